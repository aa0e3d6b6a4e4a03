package unflake.junit;

import java.io.File;
import java.io.IOException;
import java.nio.file.Paths;

/** The guest inside a JVM of the project's tests. Its arguments: record, from, to, channel, number. */
public final class Main {
    private static final int PROTOCOL = 1;

    private Main() {
    }

    public static void main(String[] arguments) throws IOException {
        Plan plan = new Plan(Paths.get(arguments[0]), arguments[1], arguments[2]);
        File folder = new File(arguments[3]);
        int vm = Integer.parseInt(arguments[4]);
        Channel channel = new Channel(folder, vm);
        int signal = Stacks.install(new File(folder, vm + ".stack"));
        plan.setSystemProperties();
        if ("true".equals(String.valueOf(plan.settings().get("enableAssertions")))) {
            ClassLoader.getSystemClassLoader().setDefaultAssertionStatus(true);
        }
        Output[] outputs = Output.install();
        Backend backend;
        try {
            backend = backend(plan);
        } catch (LinkageError missing) {
            channel.say("say", "unable", "vm", vm, "why", "no-framework", "detail", missing.toString());
            return;
        }
        channel.say("say", "hello", "protocol", PROTOCOL, "vm", vm, "pid", pid(), "framework", backend.name(),
                "framework_version", backend.version(), "language", "Java",
                "language_version", System.getProperty("java.version"), "stack_signal", signal);
        try {
            new Guest(folder, vm, channel, plan, backend, outputs).obey();
        } catch (Throwable fatal) {
            // An error that the framework hands on, as Jupiter an OutOfMemoryError. Threads that tests have
            // left must not keep the JVM: it ends as Surefire's, and the driver shows what it said.
            fatal.printStackTrace();
            System.exit(1);
        }
        System.exit(0);
    }

    private static Backend backend(Plan plan) {
        Object requested = plan.settings().get("requestedTest");
        Object groups = plan.settings().get("groups");
        Object excluded = plan.settings().get("excludegroups");
        Selection selection = new Selection(text(requested), text(groups), text(excluded));
        if (plan.text("provider").contains("junitplatform")) {
            return new Platform(selection, plan.settings());
        }
        return new JUnit4(selection);
    }

    private static String text(Object value) {
        return value == null ? null : value.toString();
    }

    private static int pid() throws IOException {
        String own = new File("/proc/self").getCanonicalFile().getName();
        if (own.matches("[0-9]+")) {
            return Integer.parseInt(own);
        }
        String name = java.lang.management.ManagementFactory.getRuntimeMXBean().getName();
        return Integer.parseInt(name.substring(0, name.indexOf('@')));
    }
}
