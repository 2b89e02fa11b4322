package dev.timebound.bigtable;

import com.google.auth.Credentials;
import com.google.auth.Retryable;
import java.io.IOException;
import java.net.URI;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

/** Credentials as google-auth has them, whose token is had, refused or never comes. */
final class TestCredentials extends Credentials {
  private static final long serialVersionUID = 1L;

  enum Mode {
    GIVES,
    /** For now: another try may get one. */
    FAILS,
    /** For good. */
    REFUSES,
    HANGS
  }

  private static final class NoToken extends IOException implements Retryable {
    private static final long serialVersionUID = 1L;
    private final boolean retryable;

    NoToken(boolean retryable) {
      super("no token to be had");
      this.retryable = retryable;
    }

    @Override
    public boolean isRetryable() {
      return retryable;
    }

    @Override
    public int getRetryCount() {
      return 0;
    }
  }

  private final transient CountDownLatch never = new CountDownLatch(1);
  final transient AtomicInteger asked = new AtomicInteger();
  volatile Mode mode = Mode.GIVES;

  @Override
  public String getAuthenticationType() {
    return "test";
  }

  @Override
  public Map<String, List<String>> getRequestMetadata(URI uri) throws IOException {
    asked.incrementAndGet();
    if (mode == Mode.FAILS) {
      throw new NoToken(true);
    }
    if (mode == Mode.REFUSES) {
      throw new NoToken(false);
    }
    if (mode == Mode.HANGS) {
      try {
        never.await();
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
    }
    return Map.of("authorization", List.of("Bearer t"), "x-extra-bin", List.of("AQID"));
  }

  /** Lets those go that hang. */
  void release() {
    mode = Mode.GIVES;
    never.countDown();
  }

  @Override
  public boolean hasRequestMetadata() {
    return true;
  }

  @Override
  public boolean hasRequestMetadataOnly() {
    return true;
  }

  @Override
  public void refresh() {}
}
