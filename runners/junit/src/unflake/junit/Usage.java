package unflake.junit;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Writes down what a watched JVM uses: the sources of the classes that it loaded, by the JVM's own log, and
 * the folders of resources, any of which it may have read from their copies.
 */
final class Usage {
    private final File log;
    private final File facts;
    private final Sources sources;
    private final Set<String> written = new LinkedHashSet<>();
    private long read;

    Usage(File folder, int vm, Sources sources) {
        this.log = new File(folder, vm + ".classes");
        this.facts = new File(folder, vm + ".usage");
        this.sources = sources;
    }

    /** Writes what every run may have used. */
    void begin(List<String> resourceFolders) {
        for (String folder : resourceFolders) {
            folders(new File(folder));
        }
        if (!log.isFile()) {
            fact("missed", "the classes that this JVM loads", null);
        }
    }

    private void folders(File folder) {
        File[] inside = folder.listFiles();
        if (inside == null) {
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
        // Classes of the project lie in folders; those in jars are what it depends on.
        if (source.startsWith("file:") && source.endsWith("/")) {
            String file = sources.path(name);
            if (file != null) {
                fact("module", file, name);
            }
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
