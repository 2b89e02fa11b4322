package dev.timebound.health;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Constructor;
import java.util.Map;
import java.util.concurrent.Callable;
import net.bytebuddy.jar.asm.ClassReader;
import net.bytebuddy.jar.asm.ClassVisitor;
import net.bytebuddy.jar.asm.ClassWriter;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.Type;

/**
 * This project's classes anew, with a meeting point after each read of some fields in some methods:
 * two threads stand between a check and what follows it, each time and on any machine, and nothing
 * of it is in the classes that users run.
 */
public final class Interleaved extends ClassLoader {
  /** A field, in a method of its own class. */
  public record Read(String method, String field) {}

  private final Map<String, Read> reads;

  /**
   * @param reads by the name of the class
   */
  public Interleaved(Map<String, Read> reads) {
    super(Interleaved.class.getClassLoader());
    this.reads = reads;
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith("dev.timebound.")) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> known = findLoadedClass(name);
      return known != null ? known : define(name);
    }
  }

  /** Runs the scene, whose classes are those of this loader. */
  public Object play(Class<? extends Callable<?>> scene) throws Exception {
    Constructor<?> constructor = loadClass(scene.getName()).getDeclaredConstructor();
    constructor.setAccessible(true);
    return ((Callable<?>) constructor.newInstance()).call();
  }

  private Class<?> define(String name) throws ClassNotFoundException {
    try (InputStream in = getResourceAsStream(name.replace('.', '/') + ".class")) {
      if (in == null) {
        throw new ClassNotFoundException(name);
      }
      byte[] bytes = in.readAllBytes();
      Read read = reads.get(name);
      byte[] used = read == null ? bytes : withMeeting(bytes, read);
      return defineClass(name, used, 0, used.length);
    } catch (IOException e) {
      throw new ClassNotFoundException(name, e);
    }
  }

  private static byte[] withMeeting(byte[] bytes, Read read) {
    ClassReader reader = new ClassReader(bytes);
    ClassWriter writer = new ClassWriter(reader, 0);
    reader.accept(
        new ClassVisitor(Opcodes.ASM9, writer) {
          @Override
          public MethodVisitor visitMethod(
              int access, String name, String descriptor, String signature, String[] exceptions) {
            MethodVisitor next = super.visitMethod(access, name, descriptor, signature, exceptions);
            return name.equals(read.method) ? new AfterRead(next, read.field) : next;
          }
        },
        0);
    return writer.toByteArray();
  }

  /** Calls {@link Meeting#meet} after the field has been read: its value is on the stack. */
  private static final class AfterRead extends MethodVisitor {
    private final String field;

    AfterRead(MethodVisitor next, String field) {
      super(Opcodes.ASM9, next);
      this.field = field;
    }

    @Override
    public void visitFieldInsn(int opcode, String owner, String name, String descriptor) {
      super.visitFieldInsn(opcode, owner, name, descriptor);
      if (opcode == Opcodes.GETFIELD && name.equals(field)) {
        super.visitMethodInsn(
            Opcodes.INVOKESTATIC, Type.getInternalName(Meeting.class), "meet", "()V", false);
      }
    }
  }
}
