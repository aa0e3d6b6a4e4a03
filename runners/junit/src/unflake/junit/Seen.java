package unflake.junit;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TimeZone;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** A piece of state as it was seen: what was there, and how to put it back. */
abstract class Seen {
    final String kind;
    final String path;
    /** Its content then; a list if it can hold several things. */
    final Object value;

    Seen(String kind, String path, Object value) {
        this.kind = kind;
        this.path = path;
        this.value = value;
    }

    boolean isRestorable() {
        return true;
    }

    /** Whether it can be taken away, if it was not there before. */
    boolean isRemovable() {
        return isRestorable();
    }

    /** Puts the value back; null for one that was not there. */
    abstract void restore(Object old) throws ReflectiveOperationException;

    /** Its content now. */
    abstract Object current() throws ReflectiveOperationException;

    /** Whether it is not as it was seen. */
    boolean hasChanged() throws ReflectiveOperationException {
        return !isSame(value, current());
    }

    /**
     * The place where a debugger can see it being changed: {@code field}, {@code method} or {@code changers} for all methods
     * that may change it; a class; a member or null; the only object that matters, or null for any.
     */
    abstract List<Object[]> spots();

    static List<Object[]> spots(Object[]... all) {
        return Arrays.asList(all);
    }

    static Object[] spot(String how, Class<?> type, String member, Object holder) {
        return new Object[] {how, type, member, holder};
    }

    /** Whether another sight of the same piece shows the same. */
    boolean isSame(Seen other) {
        return isSame(value, other.value);
    }

    private static boolean isSame(Object one, Object other) {
        if (one instanceof Contents && other instanceof Contents) {
            List<Object> here = ((Contents) one).elements;
            List<Object> there = ((Contents) other).elements;
            if (here.size() != there.size()) {
                return false;
            }
            for (int i = 0; i < here.size(); i++) {
                if (!isSame(here.get(i), there.get(i))) {
                    return false;
                }
            }
            return true;
        }
        return one == other || Show.isPlain(one) && one.equals(other);
    }

    /** All that was in something. */
    static final class Contents {
        final List<Object> elements;

        Contents(List<Object> elements) {
            this.elements = elements;
        }
    }

    /** A static field, or a field of an object. */
    static final class InField extends Seen {
        private final Field field;
        private final Object holder;

        InField(String path, Field field, Object holder, Object value) {
            super(holder == null ? "static field" : "field", path, value);
            this.field = field;
            this.holder = holder;
        }

        @Override
        boolean isRestorable() {
            return holder != null || !Modifier.isFinal(field.getModifiers());
        }

        @Override
        void restore(Object old) throws ReflectiveOperationException {
            field.set(holder, old);
        }

        @Override
        Object current() throws ReflectiveOperationException {
            return field.get(holder);
        }

        @Override
        List<Object[]> spots() {
            List<Object[]> spots = new ArrayList<>();
            spots.add(spot("field", field.getDeclaringClass(), field.getName(), holder));
            for (String name : new String[] {"set", "setBoolean", "setInt", "setLong", "setDouble"}) {
                // Reflection writes without being seen.
                spots.add(spot("method", Field.class, name, null));
            }
            return spots;
        }
    }

    /** The content of a collection, a map, an array or an atomic value. */
    static final class Inside extends Seen {
        private final Object holder;

        Inside(String path, Object holder, List<Object> elements) {
            super("contents", path, new Contents(elements));
            this.holder = holder;
        }

        @Override
        boolean isRestorable() {
            return !holder.getClass().getName().matches(".*(Unmodifiable|Immutable|Empty|Singleton|Arrays\\$).*");
        }

        @Override
        Object current() {
            return new Contents(Look.elements(holder));
        }

        @Override
        List<Object[]> spots() {
            // Nobody sees a write to an array.
            return holder.getClass().isArray() ? new ArrayList<>()
                    : spots(spot("changers", holder.getClass(), null, holder));
        }

        @Override
        @SuppressWarnings("unchecked")
        void restore(Object old) {
            List<Object> elements = old == null ? new ArrayList<>() : ((Contents) old).elements;
            if (holder instanceof Map) {
                Map<Object, Object> map = (Map<Object, Object>) holder;
                map.clear();
                for (int i = 0; i + 1 < elements.size(); i += 2) {
                    map.put(elements.get(i), elements.get(i + 1));
                }
            } else if (holder instanceof Collection) {
                Collection<Object> collection = (Collection<Object>) holder;
                collection.clear();
                collection.addAll(elements);
            } else if (holder.getClass().isArray()) {
                for (int i = 0; i < elements.size(); i++) {
                    java.lang.reflect.Array.set(holder, i, elements.get(i));
                }
            } else {
                restoreOne(elements.get(0));
            }
        }

        @SuppressWarnings("unchecked")
        private void restoreOne(Object old) {
            if (holder instanceof AtomicInteger) {
                ((AtomicInteger) holder).set((Integer) old);
            } else if (holder instanceof AtomicLong) {
                ((AtomicLong) holder).set((Long) old);
            } else if (holder instanceof AtomicBoolean) {
                ((AtomicBoolean) holder).set((Boolean) old);
            } else if (holder instanceof AtomicReference) {
                ((AtomicReference<Object>) holder).set(old);
            } else {
                StringBuilder text = (StringBuilder) holder;
                text.setLength(0);
                text.append(old);
            }
        }
    }

    /** A system property. */
    static final class Property extends Seen {
        Property(String name, Object value) {
            super("system property", name, value);
        }

        @Override
        void restore(Object old) {
            if (old == null) {
                System.clearProperty(path);
            } else {
                System.setProperty(path, (String) old);
            }
        }

        @Override
        Object current() {
            return System.getProperty(path);
        }

        @Override
        List<Object[]> spots() {
            Object all = System.getProperties();
            return spots(spot("changers", all.getClass(), null, all),
                    spot("method", System.class, "setProperties", null));
        }
    }

    /** The value that the tests' thread has of a thread local. */
    static final class OfThread extends Seen {
        private final ThreadLocal<Object> local;
        private final Memory memory;

        OfThread(String path, ThreadLocal<Object> local, Object value, Memory memory) {
            super("thread local", path, value);
            this.local = local;
            this.memory = memory;
        }

        @Override
        Object current() {
            return memory.locals().get(local);
        }

        @Override
        List<Object[]> spots() {
            return spots(spot("method", ThreadLocal.class, "set", local),
                    spot("method", ThreadLocal.class, "remove", local),
                    spot("method", ThreadLocal.class, "setInitialValue", local));
        }

        @Override
        void restore(Object old) {
            if (old == null) {
                local.remove();
            } else {
                local.set(old);
            }
        }
    }

    /** A file or a folder. */
    static final class InFile extends Seen {
        private final Disk.Entry entry;

        InFile(String name, Disk.Entry entry) {
            super("file", name, entry);
            this.entry = entry;
        }

        @Override
        boolean isRestorable() {
            return entry.isKept();
        }

        @Override
        boolean isRemovable() {
            return true;
        }

        @Override
        boolean isSame(Seen other) {
            return entry.isSame((Disk.Entry) other.value);
        }

        @Override
        void restore(Object old) throws ReflectiveOperationException {
            try {
                if (old == null) {
                    entry.remove();
                } else {
                    entry.write();
                }
            } catch (IOException closed) {
                throw new ReflectiveOperationException(closed);
            }
        }

        @Override
        Object current() {
            return value;
        }

        @Override
        List<Object[]> spots() {
            // Nobody sees a write to a file.
            return new ArrayList<>();
        }
    }

    /** The default locale or the default time zone, which is told by its name. */
    static final class Default extends Seen {
        private final Class<?> type;

        Default(String path, Class<?> type, Object value) {
            super("default", path, value);
            this.type = type;
        }

        @Override
        void restore(Object old) {
            if (type == Locale.class) {
                Locale.setDefault((Locale) old);
            } else {
                TimeZone.setDefault(TimeZone.getTimeZone((String) old));
            }
        }

        @Override
        Object current() {
            return type == Locale.class ? Locale.getDefault() : TimeZone.getDefault().getID();
        }

        @Override
        List<Object[]> spots() {
            return spots(spot("method", type, "setDefault", null));
        }
    }
}
