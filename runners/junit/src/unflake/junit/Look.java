package unflake.junit;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TimeZone;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;

/**
 * One look at the state of the JVM: the static fields of the project's classes and what they lead to, system
 * properties, the thread locals of the tests' thread, files. No method of the project is called for it.
 */
final class Look {
    /** The most steps from a field. The arguments of a mock's calls are nine steps from its field. */
    private static final int DEEPEST = 10;
    private static final int MOST = 20000;

    /** Null if the JDK does not let us look: then thread locals are not seen. */
    private final Memory memory;
    private final Map<String, Seen> seen = new LinkedHashMap<>();
    private final Set<String> unseen = new LinkedHashSet<>();
    private final Map<Object, Boolean> visited = new IdentityHashMap<>();
    private final Map<Object, String> locals = new IdentityHashMap<>();

    Look(Memory memory) {
        this.memory = memory;
    }

    Map<String, Seen> seen() {
        return seen;
    }

    Set<String> unseen() {
        return unseen;
    }

    /** Looks at everything. */
    void all(Iterable<Class<?>> initialised, Disk disk) {
        for (Class<?> type : initialised) {
            statics(type);
        }
        // To ask for the time zone sets a property.
        defaults();
        for (String name : System.getProperties().stringPropertyNames()) {
            put("property:" + name, new Seen.Property(name, System.getProperty(name)));
        }
        if (memory != null) {
            threadLocals();
        }
        for (Map.Entry<String, Disk.Entry> file : disk.look(unseen).entrySet()) {
            put("file:" + file.getKey(), new Seen.InFile(file.getKey(), file.getValue()));
        }
    }

    private void statics(Class<?> type) {
        Field[] fields;
        try {
            fields = type.getDeclaredFields();
        } catch (LinkageError error) {
            unseen.add("the fields of " + type.getName());
            return;
        }
        for (Field field : fields) {
            boolean isFixed = Modifier.isFinal(field.getModifiers())
                    && (field.getType().isPrimitive() || field.getType() == String.class);
            if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic() && !isFixed) {
                field(type.getName() + "." + field.getName(), field, null, 0);
            }
        }
    }

    private void field(String path, Field field, Object holder, int depth) {
        Object value;
        try {
            field.setAccessible(true);
            value = field.get(holder);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError closed) {
            unseen.add(path);
            return;
        }
        put("field:" + path, new Seen.InField(path, field, holder, value));
        inside(path, value, depth);
    }

    private void put(String key, Seen one) {
        if (seen.size() < MOST) {
            seen.put(key, one);
        } else {
            unseen.add("more than " + MOST + " pieces");
        }
    }

    /** The values to which a value leads. */
    private void inside(String path, Object value, int depth) {
        if (value == null || Show.isPlain(value) || visited.put(value, true) != null) {
            return;
        }
        if (depth > DEEPEST) {
            unseen.add(path + " and what it leads to");
            return;
        }
        if (value instanceof ThreadLocal) {
            locals.put(value, path);
            return;
        }
        boolean isOfJdk = value.getClass().getClassLoader() == null;
        List<Object> elements = isOfJdk ? elements(value) : null;
        if (elements != null) {
            put("contents:" + path, new Seen.Inside(path, value, elements));
            for (int i = 0; i < elements.size(); i++) {
                inside(path + "[" + i + "]", elements.get(i), depth + 1);
            }
        } else if (!isOfJdk) {
            for (Class<?> type = value.getClass(); type != null && type.getClassLoader() != null;
                    type = type.getSuperclass()) {
                for (Field field : type.getDeclaredFields()) {
                    if (!Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                        field(path + "." + field.getName(), field, value, depth + 1);
                    }
                }
            }
        } else if (depth == 0) {
            unseen.add(path + " (" + value.getClass().getName() + ")");
        }
    }

    /** The content of a container of the JDK; null for anything else. */
    static List<Object> elements(Object value) {
        List<Object> elements = new ArrayList<>();
        boolean isPlain = value.getClass().getName().startsWith("java.util.")
                && !value.getClass().getSimpleName().startsWith("Weak");
        if (value instanceof Map && isPlain) {
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                elements.add(entry.getKey());
                elements.add(entry.getValue());
            }
        } else if (value instanceof Collection && isPlain) {
            elements.addAll((Collection<?>) value);
        } else if (value.getClass().isArray()) {
            for (int i = 0; i < Math.min(Array.getLength(value), MOST); i++) {
                elements.add(Array.get(value, i));
            }
        } else if (value instanceof AtomicInteger || value instanceof AtomicLong) {
            elements.add(value instanceof AtomicLong ? (Object) ((AtomicLong) value).get()
                    : (Object) ((AtomicInteger) value).get());
        } else if (value instanceof AtomicBoolean) {
            elements.add(((AtomicBoolean) value).get());
        } else if (value instanceof AtomicReference) {
            elements.add(((AtomicReference<?>) value).get());
        } else if (value instanceof StringBuilder) {
            elements.add(value.toString());
        } else {
            return null;
        }
        return elements;
    }

    private void defaults() {
        put("default:locale", new Seen.Default("locale", Locale.class, Locale.getDefault()));
        put("default:zone", new Seen.Default("time zone", TimeZone.class, TimeZone.getDefault().getID()));
    }

    /** The thread locals to which a static field leads, with the values of this thread. */
    @SuppressWarnings("unchecked")
    private void threadLocals() {
        for (Map.Entry<Object, Object> entry : memory.locals().entrySet()) {
            String path = locals.get(entry.getKey());
            if (path != null) {
                Object value = entry.getValue();
                put("local:" + path, new Seen.OfThread(path, (ThreadLocal<Object>) entry.getKey(), value, memory));
                inside(path, value, 1);
            }
        }
    }

    /** A piece by its key; one that is not there now, as it would be without a value, or null if it is not known. */
    @SuppressWarnings("unchecked")
    Seen piece(String key) {
        Seen known = seen.get(key);
        String path = key.substring(key.indexOf(':') + 1);
        if (known == null && key.startsWith("property:")) {
            return new Seen.Property(path, null);
        }
        if (known == null && key.startsWith("local:")) {
            for (Map.Entry<Object, String> local : locals.entrySet()) {
                if (local.getValue().equals(path)) {
                    return new Seen.OfThread(path, (ThreadLocal<Object>) local.getKey(), null, memory);
                }
            }
        }
        return known;
    }
}
