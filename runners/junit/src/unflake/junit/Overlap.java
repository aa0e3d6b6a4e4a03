package unflake.junit;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Ends with 0 if no file of the folders before `--` is in one of the jars after it, and no folder of resources
 * either: then a class loader finds the same whichever of them it looks into first.
 */
public final class Overlap {
    private Overlap() {
    }

    public static void main(String[] arguments) throws IOException {
        List<String> words = Arrays.asList(arguments);
        int end = words.indexOf("--");
        Set<String> files = new HashSet<>();
        for (String folder : words.subList(0, end)) {
            collect(new File(folder), "", files);
        }
        for (String jar : words.subList(end + 1, words.size())) {
            try (ZipFile zip = new ZipFile(jar)) {
                for (ZipEntry entry : Collections.list(zip.entries())) {
                    if (files.contains(entry.getName())) {
                        System.exit(1);
                    }
                }
            }
        }
    }

    private static void collect(File folder, String prefix, Set<String> files) {
        File[] inside = folder.listFiles();
        for (File one : inside == null ? new File[0] : inside) {
            if (one.isDirectory()) {
                collect(one, prefix + one.getName() + "/", files);
            } else {
                files.add(prefix + one.getName());
                if (!one.getName().endsWith(".class") && !prefix.startsWith("META-INF/")) {
                    files.add(prefix);
                }
            }
        }
    }
}
