package unflake.junit;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/**
 * The files of the project, and those of a temporary folder that this JVM has for itself: what they were, and the
 * way back. What small files contain is kept. What tools write for themselves is left out.
 */
final class Disk {
    private static final int MOST = 20000;
    private static final long SMALL = 256 * 1024;
    private static final long IN_ALL = 64L * 1024 * 1024;
    private static final int LONGEST = 60;
    private static final Set<String> SKIPPED = new HashSet<>(
            Arrays.asList(".git", ".hg", ".svn", ".unflake", ".idea", "node_modules", "surefire-reports"));

    private final Map<String, Path> places = new LinkedHashMap<>();
    private final Map<Path, Entry> known = new TreeMap<>();
    private long held;

    Disk(String root) {
        places.put("", Paths.get(root));
        String temporary = System.getProperty("java.io.tmpdir", "");
        if (temporary.equals(System.getenv("TMPDIR")) && !Paths.get(temporary).startsWith(root)) {
            places.put("$TMPDIR/", Paths.get(temporary));
        }
    }

    /** All files and folders by their names. */
    Map<String, Entry> look(Set<String> unseen) {
        Map<String, Entry> found = new LinkedHashMap<>();
        for (Map.Entry<String, Path> place : places.entrySet()) {
            Path root = place.getValue();
            try {
                Files.walkFileTree(root, new SimpleFileVisitor<Path>() {
                    @Override
                    public FileVisitResult preVisitDirectory(Path folder, BasicFileAttributes is) {
                        if (SKIPPED.contains(String.valueOf(folder.getFileName()))) {
                            return FileVisitResult.SKIP_SUBTREE;
                        }
                        return folder.equals(root) ? FileVisitResult.CONTINUE : visitFile(folder, is);
                    }

                    @Override
                    public FileVisitResult visitFile(Path file, BasicFileAttributes is) {
                        if (found.size() >= MOST) {
                            unseen.add("more than " + MOST + " files");
                            return FileVisitResult.TERMINATE;
                        }
                        if (!file.toString().endsWith(".class")) {
                            found.put(place.getKey() + root.relativize(file), entry(file, is));
                        }
                        return FileVisitResult.CONTINUE;
                    }

                    @Override
                    public FileVisitResult visitFileFailed(Path file, IOException gone) {
                        return FileVisitResult.CONTINUE;
                    }
                });
            } catch (IOException error) {
                unseen.add("the files below " + root);
            }
        }
        return found;
    }

    private Entry entry(Path file, BasicFileAttributes is) {
        Entry old = known.get(file);
        if (old != null && old.isOf(is)) {
            return old;
        }
        Entry entry = new Entry(file, is, contents(file, is));
        if (old == null) {
            // The first sight is the one that can be put back.
            known.put(file, entry);
        }
        return entry;
    }

    private byte[] contents(Path file, BasicFileAttributes is) {
        if (!is.isRegularFile() || is.size() > SMALL || held + is.size() > IN_ALL) {
            return null;
        }
        try {
            byte[] contents = Files.readAllBytes(file);
            held += contents.length;
            return contents;
        } catch (IOException closed) {
            return null;
        }
    }

    /** A file or a folder, as it was. */
    static final class Entry {
        private final Path file;
        private final boolean isFolder;
        private final long size;
        private final FileTime time;
        private final byte[] contents;

        Entry(Path file, BasicFileAttributes is, byte[] contents) {
            this.file = file;
            this.isFolder = is.isDirectory();
            this.size = is.size();
            this.time = is.lastModifiedTime();
            this.contents = contents;
        }

        boolean isOf(BasicFileAttributes is) {
            return isFolder == is.isDirectory()
                    && (isFolder || size == is.size() && time.equals(is.lastModifiedTime()));
        }

        boolean isSame(Entry other) {
            if (isFolder || other.isFolder) {
                return isFolder == other.isFolder;
            }
            if (contents != null && other.contents != null) {
                return Arrays.equals(contents, other.contents);
            }
            return size == other.size && time.equals(other.time);
        }

        boolean isKept() {
            return contents != null;
        }

        /** Makes the file what it was. */
        void write() throws IOException {
            Files.createDirectories(file.getParent());
            Files.write(file, contents);
            Files.setLastModifiedTime(file, time);
        }

        /** Takes it away, with all that is in it. */
        void remove() throws IOException {
            if (Files.notExists(file, LinkOption.NOFOLLOW_LINKS)) {
                return;
            }
            Files.walkFileTree(file, new SimpleFileVisitor<Path>() {
                @Override
                public FileVisitResult visitFile(Path one, BasicFileAttributes is) throws IOException {
                    Files.delete(one);
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult postVisitDirectory(Path one, IOException none) throws IOException {
                    Files.delete(one);
                    return FileVisitResult.CONTINUE;
                }
            });
        }

        @Override
        public String toString() {
            if (isFolder) {
                return "a folder";
            }
            if (contents != null && contents.length <= LONGEST) {
                try {
                    return '"' + StandardCharsets.UTF_8.newDecoder()
                            .decode(java.nio.ByteBuffer.wrap(contents)).toString() + '"';
                } catch (CharacterCodingException binary) {
                    return size + " bytes";
                }
            }
            return size + " bytes";
        }
    }
}
