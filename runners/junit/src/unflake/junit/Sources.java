package unflake.junit;

import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The source lines of a class and its methods, by the debug information of the class file. */
final class Sources {
    private final List<String> roots;
    private final String base;
    private final Map<String, ClassFile> read = new HashMap<>();
    /** The folders of a package, by its name. */
    private final Map<String, List<File>> packages = new HashMap<>();
    /** All sources by the names of their files; null until somebody asks. */
    private Map<String, List<String>> byName;

    Sources(List<String> roots, String base) {
        this.roots = roots;
        this.base = base;
    }

    /** The file of a class, relative to the base if it is inside; a guess by its name if it is not found. */
    String file(String className) {
        String outer = className.contains("$") ? className.substring(0, className.indexOf('$')) : className;
        int dot = outer.lastIndexOf('.');
        String folder = dot < 0 ? "" : outer.substring(0, dot).replace('.', '/') + "/";
        String named = classFile(className).source;
        String name = named == null ? outer.substring(dot + 1) + ".java" : named;
        for (String root : roots) {
            File file = new File(root, folder + name);
            if (file.isFile()) {
                return relative(file.getPath());
            }
        }
        return relative(new File(roots.isEmpty() ? base : roots.get(0), folder + name).getPath());
    }

    /** The absolute path of the source of a class, if it is one of the project's. */
    String path(String className) {
        String file = file(className);
        File absolute = file.startsWith("/") ? new File(file) : new File(base, file);
        return absolute.isFile() ? absolute.getPath() : null;
    }

    List<String> roots() {
        return roots;
    }

    /** Whether a class that came from there is one of the project's: out of a folder, or a jar that it builds. */
    boolean isOwn(String source) {
        boolean isBuilt = source.startsWith("file:" + base + "/") && source.contains("/target/");
        return source.startsWith("file:") && (source.endsWith("/") || isBuilt);
    }

    /**
     * The sources that a class may have been made from, by its package and the name of the file, in whatever module.
     * One of the project's own may lie where its package does not say.
     */
    List<String> paths(String className, boolean isOwn) {
        // A class that is made at run time has an address behind its name.
        String name = className.split("[/+]")[0];
        int dot = name.lastIndexOf('.');
        int inner = name.indexOf('$', dot + 2);
        String outer = inner < 0 ? name : name.substring(0, inner);
        List<File> folders = folders(dot < 0 ? "" : name.substring(0, dot));
        List<String> found = new ArrayList<>();
        if (folders.isEmpty() && !isOwn) {
            return found;
        }
        String named = classFile(name).source;
        String file = named == null ? outer.substring(dot + 1) + ".java" : named;
        for (File folder : folders) {
            File one = new File(folder, file);
            if (one.isFile()) {
                found.add(one.getPath());
            }
        }
        if (found.isEmpty() && isOwn) {
            found.addAll(byName().getOrDefault(file, new ArrayList<>()));
        }
        return found;
    }

    private List<File> folders(String name) {
        return packages.computeIfAbsent(name, none -> {
            List<File> found = new ArrayList<>();
            for (String root : roots) {
                File folder = new File(root, name.replace('.', '/'));
                if (folder.isDirectory()) {
                    found.add(folder);
                }
            }
            return found;
        });
    }

    private Map<String, List<String>> byName() {
        if (byName == null) {
            byName = new HashMap<>();
            for (String root : roots) {
                gather(new File(root));
            }
        }
        return byName;
    }

    private void gather(File folder) {
        File[] inside = folder.listFiles();
        for (File one : inside == null ? new File[0] : inside) {
            if (one.isDirectory()) {
                gather(one);
            } else {
                byName.computeIfAbsent(one.getName(), none -> new ArrayList<>()).add(one.getPath());
            }
        }
    }

    /** The fields of a class that are constants, with their values, as the compiler copies them elsewhere. */
    Map<String, String> constants(String className) {
        return classFile(className).fixed;
    }

    private String relative(String path) {
        return path.startsWith(base + "/") ? path.substring(base.length() + 1) : path;
    }

    /** The first line of a method that has one, from 1; 1 if nothing is known. */
    int line(String className, String method) {
        String plain = method.replaceAll("[(\\[{ ].*", "");
        for (String name = className; name != null; name = classFile(name).parent) {
            Integer line = classFile(name).lines.get(plain);
            if (line != null) {
                return line;
            }
        }
        return 1;
    }

    private ClassFile classFile(String className) {
        return read.computeIfAbsent(className, name -> {
            String path = name.replace('.', '/') + ".class";
            try (InputStream in = Sources.class.getClassLoader().getResourceAsStream(path)) {
                return in == null ? new ClassFile() : new ClassFile(new DataInputStream(
                        new java.io.BufferedInputStream(in)));
            } catch (IOException | RuntimeException unreadable) {
                return new ClassFile();
            }
        });
    }

    /** The parts of a class file that say where it comes from (JVM specification, chapter 4). */
    private static final class ClassFile {
        String source;
        String parent;
        final Map<String, Integer> lines = new HashMap<>();
        final Map<String, String> fixed = new TreeMap<>();
        private Object[] constants = new Object[0];

        ClassFile() {
        }

        ClassFile(DataInputStream in) throws IOException {
            in.readInt();
            in.readInt();
            readConstants(in);
            in.readUnsignedShort();
            in.readUnsignedShort();
            int parentIndex = in.readUnsignedShort();
            Object parentName = parentIndex == 0 ? null : constants[(Integer) constants[parentIndex]];
            parent = parentName == null || parentName.equals("java/lang/Object") ? null
                    : parentName.toString().replace('/', '.');
            int interfaces = in.readUnsignedShort();
            in.skipBytes(2 * interfaces);
            readMembers(in, false);
            readMembers(in, true);
            int attributes = in.readUnsignedShort();
            for (int i = 0; i < attributes; i++) {
                String name = (String) constants[in.readUnsignedShort()];
                int length = in.readInt();
                if (name.equals("SourceFile")) {
                    source = (String) constants[in.readUnsignedShort()];
                } else {
                    skip(in, length);
                }
            }
        }

        private void readConstants(DataInputStream in) throws IOException {
            int count = in.readUnsignedShort();
            constants = new Object[count];
            for (int i = 1; i < count; i++) {
                int tag = in.readUnsignedByte();
                switch (tag) {
                    case 1: constants[i] = in.readUTF(); break;
                    case 3: case 4: constants[i] = String.valueOf(in.readInt()); break;
                    case 5: case 6: constants[i++] = String.valueOf(in.readLong()); break;
                    case 7: case 8: constants[i] = in.readUnsignedShort(); break;
                    case 16: case 19: case 20: in.readUnsignedShort(); break;
                    case 15: skip(in, 3); break;
                    default: skip(in, 4);
                }
            }
        }

        private void readMembers(DataInputStream in, boolean isMethod) throws IOException {
            int count = in.readUnsignedShort();
            for (int i = 0; i < count; i++) {
                in.readUnsignedShort();
                String name = (String) constants[in.readUnsignedShort()];
                in.readUnsignedShort();
                int attributes = in.readUnsignedShort();
                for (int j = 0; j < attributes; j++) {
                    String attribute = (String) constants[in.readUnsignedShort()];
                    int length = in.readInt();
                    if (isMethod && attribute.equals("Code")) {
                        readCode(in, name);
                    } else if (!isMethod && attribute.equals("ConstantValue")) {
                        Object value = constants[in.readUnsignedShort()];
                        fixed.put(name, String.valueOf(value instanceof Integer ? constants[(Integer) value] : value));
                    } else {
                        skip(in, length);
                    }
                }
            }
        }

        private void readCode(DataInputStream in, String method) throws IOException {
            skip(in, 4);
            skip(in, in.readInt());
            skip(in, 8 * in.readUnsignedShort());
            int attributes = in.readUnsignedShort();
            for (int i = 0; i < attributes; i++) {
                String name = (String) constants[in.readUnsignedShort()];
                int length = in.readInt();
                if (!name.equals("LineNumberTable")) {
                    skip(in, length);
                    continue;
                }
                int count = in.readUnsignedShort();
                for (int j = 0; j < count; j++) {
                    in.readUnsignedShort();
                    lines.merge(method, in.readUnsignedShort(), Math::min);
                }
            }
        }

        private static void skip(DataInputStream in, int count) throws IOException {
            for (int left = count; left > 0;) {
                int skipped = in.skipBytes(left);
                if (skipped <= 0) {
                    throw new IOException("the class file is cut off");
                }
                left -= skipped;
            }
        }
    }
}
