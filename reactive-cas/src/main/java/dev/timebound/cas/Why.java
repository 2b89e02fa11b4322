package dev.timebound.cas;

import io.grpc.MethodDescriptor;
import java.io.ByteArrayInputStream;
import java.io.InputStream;

/** A method that no server has, for a call that is to fail before it is sent. */
final class Why implements MethodDescriptor.Marshaller<Object> {
  static final MethodDescriptor<Object, Object> METHOD =
      MethodDescriptor.<Object, Object>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName("timebound.Connection/Why")
          .setRequestMarshaller(new Why())
          .setResponseMarshaller(new Why())
          .build();

  private Why() {}

  @Override
  public InputStream stream(Object value) {
    return new ByteArrayInputStream(new byte[0]);
  }

  @Override
  public Object parse(InputStream stream) {
    return stream;
  }
}
