package unflake.junit;

import java.lang.reflect.Field;
import java.lang.reflect.Method;

/** Reads what plain reflection does not show, or shows only by running code of the project. */
final class Memory {
    private final Object unsafe;
    private final Method isPending;
    private final Method offset;
    private final Method read;

    private Memory(Class<?> type) throws ReflectiveOperationException {
        Field own = type.getDeclaredField("theUnsafe");
        own.setAccessible(true);
        unsafe = own.get(null);
        isPending = type.getMethod("shouldBeInitialized", Class.class);
        offset = type.getMethod("objectFieldOffset", Field.class);
        read = type.getMethod("getObject", Object.class, long.class);
    }

    /** The memory of this JVM; null if its JDK does not let us look. */
    static Memory open() {
        try {
            return new Memory(Class.forName("sun.misc.Unsafe"));
        } catch (ReflectiveOperationException | RuntimeException none) {
            return null;
        }
    }

    /** Whether the static fields of a class have their values; to read one of another would run its code. */
    boolean isInitialised(Class<?> type) {
        try {
            return Boolean.FALSE.equals(isPending.invoke(unsafe, type));
        } catch (ReflectiveOperationException none) {
            return false;
        }
    }

    /** The value of a field of the JDK's own; null if there is none of that name. */
    Object read(Object holder, String name) {
        if (holder == null) {
            return null;
        }
        for (Class<?> type = holder.getClass(); type != null; type = type.getSuperclass()) {
            try {
                Object at = offset.invoke(unsafe, type.getDeclaredField(name));
                return read.invoke(unsafe, holder, at);
            } catch (NoSuchFieldException above) {
                continue;
            } catch (ReflectiveOperationException none) {
                return null;
            }
        }
        return null;
    }
}
