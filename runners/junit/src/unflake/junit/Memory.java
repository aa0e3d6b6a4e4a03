package unflake.junit;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.IdentityHashMap;
import java.util.Map;

/** Reads what plain reflection does not show, or shows only by running code of the project. */
final class Memory {
    private final Object unsafe;
    /** Null on a JDK after 21. */
    private final Method isPending;
    private final Method offset;
    private final Method read;

    private Memory(Class<?> type) throws ReflectiveOperationException {
        Field own = type.getDeclaredField("theUnsafe");
        own.setAccessible(true);
        unsafe = own.get(null);
        isPending = pending(type);
        offset = type.getMethod("objectFieldOffset", Field.class);
        read = type.getMethod("getObject", Object.class, long.class);
    }

    private static Method pending(Class<?> type) {
        try {
            return type.getMethod("shouldBeInitialized", Class.class);
        } catch (NoSuchMethodException gone) {
            return null;
        }
    }

    /** The memory of this JVM; null if its JDK does not let us look. */
    static Memory open() {
        try {
            Memory memory = new Memory(Class.forName("sun.misc.Unsafe"));
            // A thread has a name; a JDK that forbids to look shows none.
            return memory.read(Thread.currentThread(), "name") == null ? null : memory;
        } catch (ReflectiveOperationException | RuntimeException none) {
            return null;
        }
    }

    /** Whether this JVM says which classes are in use. */
    boolean knowsPending() {
        return isPending != null;
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

    /** The values that this thread has of thread locals. */
    Map<Object, Object> locals() {
        Map<Object, Object> found = new IdentityHashMap<>();
        Object table = read(read(Thread.currentThread(), "threadLocals"), "table");
        int count = table == null ? 0 : Array.getLength(table);
        for (int i = 0; i < count; i++) {
            Object entry = Array.get(table, i);
            Object local = read(entry, "referent");
            if (local != null) {
                found.put(local, read(entry, "value"));
            }
        }
        return found;
    }
}
