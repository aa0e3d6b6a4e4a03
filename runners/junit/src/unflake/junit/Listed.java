package unflake.junit;

/** A test as it is listed: the smallest thing that can be named before anything runs. */
final class Listed {
    /** The class that Surefire runs, whose set-up it shares. */
    final Class<?> group;
    /** The class that has the method. */
    final String className;
    /** The method, or what stands for one. */
    final String method;
    /** The framework's own key. */
    final Object key;
    final String id;
    int copy;
    /** Its place in the list. */
    int place;

    Listed(Class<?> group, String className, String name, String method, Object key) {
        this.group = group;
        this.className = className;
        this.method = method;
        this.key = key;
        this.id = className + "#" + name;
    }
}
