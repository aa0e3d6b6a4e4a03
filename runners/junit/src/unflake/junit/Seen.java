package unflake.junit;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/** A piece of state as it was seen: what was there, and how to put it back. */
abstract class Seen {
    final String kind;
    final String path;
    /** What it held; a list of all that was in it, for something that holds several. */
    final Object value;

    Seen(String kind, String path, Object value) {
        this.kind = kind;
        this.path = path;
        this.value = value;
    }

    boolean isRestorable() {
        return true;
    }

    /** Puts the value back; null for one that was not there. */
    abstract void restore(Object old) throws ReflectiveOperationException;

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
    }

    /** What is in a collection, a map, an array or an atomic value. */
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
    }

    /** The value that the tests' thread has of a thread local. */
    static final class OfThread extends Seen {
        private final ThreadLocal<Object> local;

        OfThread(String path, ThreadLocal<Object> local, Object value) {
            super("thread local", path, value);
            this.local = local;
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
}
