package unflake.junit;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * Writes down what a watched JVM uses: the sources of the classes that it loaded, by the JVM's own log, and
 * the resources, any of which it may have read from their copies.
 */
final class Usage {
    /** Without one of these nobody talks to another process. */
    private static final List<String> CALLERS = Arrays.asList("java.net.Socket", "sun.nio.ch.SocketChannelImpl",
            "java.net.DatagramSocket", "sun.nio.ch.DatagramChannelImpl");
    private static final List<String> LISTENERS = Arrays.asList("java.net.ServerSocket",
            "sun.nio.ch.ServerSocketChannelImpl");

    private final File log;
    private final File facts;
    private final Sources sources;
    private final Set<String> written = new LinkedHashSet<>();
    private long read;
    private boolean isListening;
    private boolean isCalling;

    Usage(File folder, int vm, Sources sources) {
        this.log = new File(folder, vm + ".classes");
        this.facts = new File(folder, vm + ".usage");
        this.sources = sources;
    }

    /** Writes what every run may have used, and that of files only the sources of classes are watched. */
    void begin(List<String> resources, List<String> classes) {
        for (String root : sources.roots()) {
            fact("only-code", root, null);
        }
        for (String resource : resources) {
            File file = new File(resource);
            if (file.isDirectory()) {
                folders(file);
            } else {
                fact(file.isFile() ? "read" : "looked", file.getPath(), null);
            }
        }
        Map<String, Map<String, String>> constants = new TreeMap<>();
        for (String folder : classes) {
            constants(new File(folder), "", constants);
        }
        for (Map.Entry<String, Map<String, String>> source : constants.entrySet()) {
            fact("constants", source.getKey(), source.getValue().toString());
        }
        if (!log.isFile()) {
            fact("missed", "the classes that this JVM loads", null);
        }
    }

    /** The constants of each source: the compiler copies them into other classes, which then need not load them. */
    private void constants(File folder, String prefix, Map<String, Map<String, String>> found) {
        File[] inside = folder.listFiles();
        for (File one : inside == null ? new File[0] : inside) {
            String name = one.getName();
            if (one.isDirectory()) {
                constants(one, prefix + name + ".", found);
            } else if (name.endsWith(".class")) {
                String type = prefix + name.substring(0, name.length() - ".class".length());
                String source = sources.path(type);
                if (source != null) {
                    Map<String, String> own = found.computeIfAbsent(source, none -> new TreeMap<>());
                    sources.constants(type).forEach((field, value) -> own.put(type + "." + field, value));
                }
            }
        }
    }

    private void folders(File folder) {
        File[] inside = folder.listFiles();
        if (inside == null || folder.getName().equals(".git")) {
            return;
        }
        fact("listed", folder.getPath(), null);
        fact("scanned", folder.getPath(), null);
        for (File one : inside) {
            folders(one);
        }
    }

    /** Writes what has been loaded since the last time. */
    void update() {
        try (RandomAccessFile in = new RandomAccessFile(log, "r")) {
            byte[] fresh = new byte[(int) (in.length() - read)];
            in.seek(read);
            in.readFully(fresh);
            read += fresh.length;
            for (String line : new String(fresh, StandardCharsets.UTF_8).split("\n")) {
                loaded(line);
            }
            // Who listens too may talk to himself: most tests of a network do.
            if (isCalling && !isListening) {
                fact("talked", "some port", null);
            }
        } catch (IOException error) {
            fact("missed", "the classes that this JVM loads", null);
        }
    }

    private void loaded(String line) {
        int at = line.indexOf(" source: ");
        if (at < 0) {
            return;
        }
        String name = line.substring(0, at).trim();
        String source = line.substring(at + " source: ".length()).trim();
        if (name.equals("java.lang.ProcessImpl")) {
            fact("missed", "the programs that it starts", null);
        }
        isCalling |= CALLERS.contains(name);
        isListening |= LISTENERS.contains(name);
        // Who makes a class says where it comes from, a loader of the project's own for example. Its name tells more.
        boolean isOwn = sources.isOwn(source);
        List<String> files = sources.paths(name, isOwn);
        for (String file : files) {
            fact("module", file, name);
            if (source.startsWith("file:") && source.endsWith(".jar")) {
                fact("jar", source.substring("file:".length()), file);
            }
        }
        if (isOwn && files.isEmpty()) {
            fact("missed", "the sources of classes in " + source.substring("file:".length()), null);
        }
    }

    private void fact(String what, String path, String name) {
        List<Object> words = new ArrayList<>();
        words.add(what);
        words.add(path);
        if (name != null) {
            words.add(name);
        }
        String line = Json.write(words) + "\n";
        if (!written.add(line)) {
            return;
        }
        try (FileOutputStream out = new FileOutputStream(facts, true)) {
            out.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
