package unflake.junit;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Writes the stacks of all threads into a file when the stack signal comes. */
final class Stacks {
    private static final String SIGNAL = "STKFLT";

    private Stacks() {
    }

    /** The number of the signal; 0 if the JVM cannot take one. */
    static int install(File file) {
        try {
            Class<?> signal = Class.forName("sun.misc.Signal");
            Class<?> handler = Class.forName("sun.misc.SignalHandler");
            Object own = signal.getConstructor(String.class).newInstance(SIGNAL);
            Object writer = Proxy.newProxyInstance(Stacks.class.getClassLoader(), new Class<?>[] {handler},
                    (proxy, method, arguments) -> {
                        if (method.getName().equals("handle")) {
                            write(file);
                            return null;
                        }
                        return method.getName().equals("hashCode") ? (Object) 1 : (Object) false;
                    });
            signal.getMethod("handle", signal, handler).invoke(null, own, writer);
            return (Integer) signal.getMethod("getNumber").invoke(own);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError none) {
            return 0;
        }
    }

    private static void write(File file) throws IOException {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<Thread, StackTraceElement[]> one : Thread.getAllStackTraces().entrySet()) {
            Thread thread = one.getKey();
            ThreadGroup group = thread.getThreadGroup();
            boolean isOfSystem = group == null || group.getName().equals("system")
                    || group.getName().equals("InnocuousThreadGroup");
            if (isOfSystem || thread == Thread.currentThread()) {
                continue;
            }
            text.append('"').append(thread.getName()).append("\" ").append(thread.getState()).append('\n');
            for (StackTraceElement frame : one.getValue()) {
                if (Texts.isOfFramework(frame.toString())) {
                    break;
                }
                text.append("    at ").append(frame).append('\n');
            }
            text.append('\n');
        }
        try (FileOutputStream out = new FileOutputStream(file)) {
            out.write(text.toString().getBytes(StandardCharsets.UTF_8));
        }
    }
}
