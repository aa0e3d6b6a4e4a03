package unflake.junit;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Remembers the state of the JVM, says what has changed, and puts pieces back.
 *
 * <p>A class has static fields only from its first use on. To compare them, those that an earlier JVM with the
 * same tests came to use are initialised before the state is remembered; their names are kept in a file.
 */
final class State {
    /** The parts of a path at which a mock of Mockito's keeps the arguments of its calls. */
    private static final String MOCKITO = ".mockitoInterceptor.";
    private static final String CALLS = ".registeredInvocations.invocations";

    private final List<String> folders;
    private final Path used;
    private final Memory memory = Memory.open();
    private final InUse inUse;
    private final Disk disk;
    private final Set<Class<?>> atMark = new LinkedHashSet<>();
    private Look marked;

    /** The classes are in `folders`; `used` is the file with the names, `log` that of the JVM itself. */
    State(List<String> folders, Path used, File log, Disk disk) {
        this.folders = folders;
        this.disk = disk;
        this.used = used;
        this.inUse = new InUse(log, memory);
    }

    /** Remembers the state; tells what could not be looked into. */
    List<Object> mark() {
        List<Object> unseen = new ArrayList<>();
        atMark.clear();
        if (inUse.refresh()) {
            initialise(unseen);
            atMark.addAll(initialised());
        } else {
            unseen.add("static fields: the JVM does not say which classes are in use");
        }
        if (memory == null) {
            unseen.add("thread locals: the JDK does not let them be read");
        }
        marked = look();
        unseen.addAll(marked.unseen());
        return unseen;
    }

    private Look look() {
        Look look = new Look(memory);
        look.all(atMark, disk);
        return look;
    }

    private void initialise(List<Object> unseen) {
        List<String> names = new ArrayList<>();
        try {
            if (Files.isRegularFile(used)) {
                names = Files.readAllLines(used, StandardCharsets.UTF_8);
            }
        } catch (IOException error) {
            unseen.add("the classes in use: " + error);
        }
        for (String name : names) {
            try {
                Class.forName(name, true, State.class.getClassLoader());
            } catch (ClassNotFoundException | LinkageError error) {
                unseen.add("the static fields of " + name);
            }
        }
    }

    /** The changes since the state was remembered. */
    List<Object> compare(Set<String> unseen) {
        List<Object> pieces = new ArrayList<>();
        if (marked == null) {
            return pieces;
        }
        keepNames();
        Look now = look();
        unseen.addAll(now.unseen());
        Set<String> keys = new LinkedHashSet<>(marked.seen().keySet());
        keys.addAll(now.seen().keySet());
        List<String> changed = new ArrayList<>();
        for (String key : keys) {
            Seen before = marked.seen().get(key);
            Seen after = now.seen().get(key);
            if (before != null && after != null && before.isSame(after) || isBelow(changed, key)) {
                continue;
            }
            Seen known = before == null ? after : before;
            boolean isValue = known instanceof Seen.Property || known instanceof Seen.OfThread
                    || known instanceof Seen.InFile;
            if (!isValue && (before == null || after == null)) {
                // It came or went with something that has changed.
                continue;
            }
            changed.add(known.path);
            pieces.add(piece(key, known, before, after));
        }
        return pieces;
    }

    private static Map<String, Object> piece(String key, Seen known, Seen before, Seen after) {
        String is = after == null ? null : Show.text(after.value);
        boolean isRestorable = before == null ? known.isRemovable() : known.isRestorable();
        boolean isMock = is != null && is.contains("Mockito");
        int mock = known.path.endsWith(CALLS) ? known.path.indexOf(MOCKITO) : -1;
        return Json.object("key", key, "kind", mock < 0 ? known.kind : "calls of the mock",
                "path", mock < 0 ? known.path : known.path.substring(0, mock),
                "before", before == null ? null : Show.text(before.value), "after", is, "owner", null,
                "mock", isMock, "restorable", isRestorable);
    }

    /** Whether something above a piece has changed as a whole. */
    private static boolean isBelow(List<String> changed, String key) {
        String path = key.substring(key.indexOf(':') + 1);
        for (String above : changed) {
            if (path.startsWith(above + ".") || path.startsWith(above + "[")
                    || path.startsWith(above + "/")) {
                return true;
            }
        }
        return false;
    }

    /** Puts pieces back as they were. */
    void restore(List<?> keys) throws ReflectiveOperationException {
        Look now = look();
        for (Object one : keys) {
            String key = String.valueOf(one);
            Seen before = marked.seen().get(key);
            Seen known = before == null ? now.seen().get(key) : before;
            if (known != null) {
                known.restore(before == null ? null : before.value);
            }
        }
    }

    /** A piece as it was remembered; null if it is not known. */
    Seen piece(String key) {
        return marked == null ? null : marked.piece(key);
    }

    private void keepNames() {
        Set<String> names = new TreeSet<>();
        for (Class<?> type : initialised()) {
            names.add(type.getName());
        }
        try {
            Files.write(used, names, StandardCharsets.UTF_8);
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    /** The project's classes that are in use. To look for them loads others, and initialises none. */
    private Set<Class<?>> initialised() {
        Set<Class<?>> found = new LinkedHashSet<>();
        if (!inUse.refresh()) {
            return found;
        }
        for (String folder : folders) {
            File root = new File(folder);
            if (root.isDirectory()) {
                collect(root, "", found);
            }
        }
        return found;
    }

    private void collect(File folder, String prefix, Set<Class<?>> found) {
        File[] inside = folder.listFiles();
        if (inside == null) {
            return;
        }
        java.util.Arrays.sort(inside);
        for (File one : inside) {
            String name = one.getName();
            if (one.isDirectory()) {
                collect(one, prefix + name + ".", found);
            } else if (name.endsWith(".class") && !name.equals("module-info.class")) {
                try {
                    String full = prefix + name.substring(0, name.length() - ".class".length());
                    Class<?> type = Class.forName(full, false, State.class.getClassLoader());
                    if (inUse.has(type)) {
                        found.add(type);
                    }
                } catch (ClassNotFoundException | LinkageError unusable) {
                    // Nobody can have used it.
                    continue;
                }
            }
        }
    }
}
