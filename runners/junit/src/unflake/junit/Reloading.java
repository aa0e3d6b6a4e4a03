package unflake.junit;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.MalformedURLException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.security.ProtectionDomain;
import java.security.cert.Certificate;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Classes of the project that are loaded anew for one test, and a thread of its own for it.
 *
 * <p>Static fields and thread locals are then as in a JVM that has just started, at the price of the test's own
 * classes. What libraries and the JDK remember is not: this is a first look, and no fresh VM.
 */
final class Reloading {
    /** The share of the heap that may be in use before another set of classes is loaded. */
    private static final double FULL = 0.6;
    /** The most threads that tests may have left behind. */
    private static final int MANY_THREADS = 200;

    private final ClassLoader parent;
    private final Map<String, Path> files = new HashMap<>();
    private final Map<String, byte[]> read = new ConcurrentHashMap<>();
    private final Map<String, ProtectionDomain> domains = new HashMap<>();
    private final JvmSettings settings = JvmSettings.now();
    /** Whether there was no memory left for a test. */
    private boolean isWornOut;

    /** The classes of some folders; all else is that of {@code parent}. */
    Reloading(List<String> folders, ClassLoader parent) {
        this.parent = parent;
        for (String folder : folders) {
            if (Files.isDirectory(new File(folder).toPath())) {
                find(new File(folder).toPath());
            }
        }
    }

    private void find(Path folder) {
        ProtectionDomain domain;
        try (Stream<Path> all = Files.walk(folder)) {
            domain = new ProtectionDomain(new CodeSource(folder.toUri().toURL(), (Certificate[]) null), null);
            all.filter(file -> file.toString().endsWith(".class")).forEach(file -> {
                String path = folder.relativize(file).toString();
                String name = path.substring(0, path.length() - ".class".length()).replace(File.separatorChar, '.');
                if (files.putIfAbsent(name, file) == null) {
                    domains.put(name, domain);
                }
            });
        } catch (MalformedURLException impossible) {
            throw new IllegalStateException(impossible);
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    /** Whether there is room for another set of classes. */
    boolean hasRoom() {
        if (isWornOut || Thread.activeCount() > MANY_THREADS) {
            return false;
        }
        if (usedShare() > FULL) {
            System.gc();
        }
        return usedShare() <= FULL;
    }

    private static double usedShare() {
        Runtime runtime = Runtime.getRuntime();
        return (double) (runtime.totalMemory() - runtime.freeMemory()) / runtime.maxMemory();
    }

    /** Notes that there was no memory left for a test. */
    void wearOut() {
        isWornOut = true;
    }

    /** Does something in a thread of its own, with a loader of its own, and puts the JVM's settings back. */
    void with(Consumer<ClassLoader> test) {
        ClassLoader loader = new Loader(this, parent);
        Thread thread = new Thread(Thread.currentThread().getThreadGroup(), () -> test.accept(loader), "main");
        thread.setContextClassLoader(loader);
        thread.start();
        while (thread.isAlive()) {
            try {
                thread.join();
            } catch (InterruptedException again) {
                // Nobody but a test could have meant that, and it is not for us.
                continue;
            }
        }
        settings.putBack();
    }

    private static final class Loader extends ClassLoader {
        static {
            registerAsParallelCapable();
        }

        private final Reloading classes;

        Loader(Reloading classes, ClassLoader parent) {
            super(parent);
            this.classes = classes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            Path file = classes.files.get(name);
            if (file == null) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> known = findLoadedClass(name);
                Class<?> type = known == null ? define(name, file) : known;
                if (resolve) {
                    resolveClass(type);
                }
                return type;
            }
        }

        private Class<?> define(String name, Path file) throws ClassNotFoundException {
            byte[] bytes = classes.read.get(name);
            if (bytes == null) {
                try {
                    bytes = Files.readAllBytes(file);
                } catch (IOException gone) {
                    throw new ClassNotFoundException(name, gone);
                }
                classes.read.put(name, bytes);
            }
            int end = name.lastIndexOf('.');
            if (end > 0) {
                try {
                    definePackage(name.substring(0, end), null, null, null, null, null, null, null);
                } catch (IllegalArgumentException known) {
                    // Another of its classes came before.
                    end = 0;
                }
            }
            return defineClass(name, bytes, 0, bytes.length, classes.domains.get(name));
        }
    }
}
