package unflake.junit;

import java.util.List;

/** One of the ways to run tests: JUnit 4 by itself, or the JUnit Platform. */
interface Backend {
    /** Tells what becomes of tests that run. */
    interface Watcher {
        void started(Listed test);

        void ended(Listed test, Ended how);

        /** A fixture that all tests of the class share failed. */
        void groupFailed(Throwable error);
    }

    /** The framework's name. */
    String name();

    /** The framework's version. */
    String version();

    /** The tests of these classes in the order in which they run. */
    List<Listed> list(List<Class<?>> classes);

    /** Runs tests of one class, with what is set up for the class, in the framework's own order. */
    void run(Class<?> group, List<Listed> tests, Watcher watcher);
}
