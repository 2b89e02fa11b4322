package dev.timebound.bigtable;

import com.google.protobuf.InvalidProtocolBufferException;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The names of the last row's cells by their place in it: rows of a table mostly have the same
 * columns in the same order, and then share one object a name. Bounded: the first {@value #PLACES}
 * places, names of at most {@value #LONGEST} bytes.
 */
final class Names<T> {
  interface Maker<T> {
    /** Takes the array as it is. */
    T make(byte[] bytes) throws InvalidProtocolBufferException;
  }

  private static final int PLACES = 64;
  private static final int LONGEST = 256;

  private final Maker<T> maker;
  private byte[] @Nullable [] bytes = new byte[4][];
  private @Nullable Object[] names = new Object[4];

  Names(Maker<T> maker) {
    this.maker = maker;
  }

  @SuppressWarnings("unchecked") // only what the maker made is in it
  T at(int place, Span span) throws InvalidProtocolBufferException {
    if (place >= PLACES || span.length() > LONGEST) {
      return maker.make(span.copy());
    }
    if (place >= bytes.length) {
      int room = Math.min(PLACES, Math.max(place + 1, 2 * bytes.length));
      bytes = Arrays.copyOf(bytes, room);
      names = Arrays.copyOf(names, room);
    }
    byte[] known = bytes[place];
    if (known != null && span.isEqualTo(known)) {
      return (T) names[place];
    }
    byte[] copy = span.copy();
    T name = maker.make(copy);
    bytes[place] = copy;
    names[place] = name;
    return name;
  }
}
