package unflake.junit;

import java.io.File;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The fields of a failure: its kind, and the places in the project's own code that it came from. */
final class Failures {
    /** The most frames that are reported: the innermost. */
    private static final int MOST = 50;

    private final List<File> folders = new ArrayList<>();
    private final Map<String, Boolean> own = new HashMap<>();

    /** The project's own classes lie in `folders`; those of its dependencies in jars. */
    Failures(List<String> folders) {
        for (String folder : folders) {
            this.folders.add(new File(folder));
        }
    }

    /** The name of the class of what was thrown; empty for nothing. */
    String kind(Throwable error) {
        return error == null ? "" : error.getClass().getName();
    }

    /** The calls of the project that led to what was thrown, the outermost first: file, method, and no text. */
    List<Object> frames(Throwable error) {
        List<Object> frames = new ArrayList<>();
        for (StackTraceElement element : stack(error)) {
            if (frames.size() < MOST && isOwn(element.getClassName())) {
                List<Object> frame = new ArrayList<>();
                frame.add(file(element));
                frame.add(element.getClassName() + "." + method(element.getMethodName()));
                frame.add("");
                frames.add(frame);
            }
        }
        Collections.reverse(frames);
        return frames;
    }

    private static StackTraceElement[] stack(Throwable error) {
        try {
            StackTraceElement[] stack = error == null ? null : error.getStackTrace();
            return stack == null ? new StackTraceElement[0] : stack;
        } catch (Throwable own) {
            // The project's own exception does not say where it is from.
            return new StackTraceElement[0];
        }
    }

    /** A method by its own name; the compiler numbers the lambdas of a class, and another one moves them all. */
    private static String method(String name) {
        return name.startsWith("lambda$") ? name.split("\\$")[1] : name;
    }

    /** The name of the source, by that of the class if the compiler left it out. */
    private static String file(StackTraceElement element) {
        if (element.getFileName() != null) {
            return element.getFileName();
        }
        String name = element.getClassName().substring(element.getClassName().lastIndexOf('.') + 1);
        int inner = name.indexOf('$');
        return (inner > 0 ? name.substring(0, inner) : name) + ".java";
    }

    /** Whether a class is in a folder of the project. To look for its file loads no class. */
    private boolean isOwn(String name) {
        Boolean known = own.get(name);
        if (known == null) {
            String path = name.replace('.', File.separatorChar) + ".class";
            known = false;
            for (File folder : folders) {
                known |= new File(folder, path).isFile();
            }
            own.put(name, known);
        }
        return known;
    }
}
