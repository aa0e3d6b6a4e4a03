package unflake.junit;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SortedSet;
import java.util.TreeSet;

/** Does what the driver says. It decides nothing. */
final class Guest {
    private final Channel channel;
    private final Plan plan;
    private final Backend backend;
    private final Output[] outputs;
    private final Failures failures;
    private final Map<String, Listed> known = new HashMap<>();
    private final List<String> only = new ArrayList<>();
    /** The record of what this JVM uses; null if nobody wants to know. */
    private Usage usage;
    private final File folder;
    private final int vm;
    /** The state that is remembered; null until somebody asks. */
    private State state;
    /** Classes that are loaded anew for a test; null until somebody asks. */
    private Reloading reloading;

    Guest(File folder, int vm, Channel channel, Plan plan, Backend backend, Output[] outputs) {
        this.folder = folder;
        this.vm = vm;
        this.channel = channel;
        this.plan = plan;
        this.backend = backend;
        this.outputs = outputs;
        this.failures = new Failures(folders());
    }

    /** Obeys commands until there are no more. */
    void obey() {
        for (Map<String, Object> next = channel.next(); next != null; next = channel.next()) {
            Map<String, Object> command = next;
            String what = String.valueOf(command.get("do"));
            switch (what) {
                case "start":
                    start(command);
                    break;
                case "collect":
                    collect(command);
                    break;
                case "run":
                    run(tests(command), true);
                    break;
                case "rerun":
                    rerun(command);
                    break;
                case "twice":
                    twice(command);
                    break;
                case "mark":
                    channel.say("say", "marked", "unseen", state().mark());
                    break;
                case "compare":
                    compare();
                    break;
                case "locate":
                    new Writers(channel, sources()).locate(state(), (List<?>) command.get("keys"),
                            () -> run(tests(command), false));
                    break;
                case "fork":
                    channel.say("say", "unforked", "vm", command.get("vm"), "why", "a JVM cannot be copied");
                    break;
                case "finish":
                    channel.say("say", "finished", "status", 0, "extra", 0);
                    return;
                default:
                    throw new IllegalArgumentException("the command " + what + " is not known");
            }
        }
        // The driver is gone.
        Runtime.getRuntime().halt(1);
    }

    private void start(Map<String, Object> command) {
        for (Object argument : (List<?>) command.get("args")) {
            only.add(String.valueOf(argument));
        }
        if (Boolean.TRUE.equals(command.get("watch"))) {
            usage = new Usage(folder, vm, sources());
            usage.begin(plan.texts("resources"), folders());
            channel.first(usage::update);
        }
        channel.say("say", "parsed", "workers", null, "interactive", false, "collect_only", false);
    }

    private void collect(Map<String, Object> command) {
        Object worker = command.get("worker");
        if (worker instanceof Map) {
            long number = ((Number) ((Map<?, ?>) worker).get("number")).longValue();
            System.setProperty("surefire.forkNumber", String.valueOf(number + 1));
        }
        List<Object> errors = new ArrayList<>();
        List<Class<?>> classes = new ArrayList<>();
        for (String name : wantedClasses()) {
            try {
                classes.add(Class.forName(name, false, Guest.class.getClassLoader()));
            } catch (ClassNotFoundException | LinkageError error) {
                errors.add(Json.object("where", name, "text", Texts.trace(error)));
            }
        }
        List<Listed> tests = list(classes, errors);
        known.putAll(number(tests));
        Sources sources = sources();
        List<Object> listed = new ArrayList<>();
        for (Listed test : tests) {
            listed.add(Json.object("test", test.id, "copy", test.copy, "file", sources.file(test.className),
                    "line", sources.line(test.className, test.method)));
        }
        channel.say("say", "tests", "root", plan.text("root"), "config_file", plan.text("basedir") + "/pom.xml",
                "tests", listed, "errors", errors, "blocked", false, "deselected", 0,
                "replay", new ArrayList<>(), "positional", new ArrayList<>(), "left_out", new ArrayList<>(),
                "imported_from", new ArrayList<>(), "installed", installed());
    }

    /** Gives each test its place and tells those of one name apart. */
    private static Map<String, Listed> number(List<Listed> tests) {
        Map<String, Integer> copies = new HashMap<>();
        Map<String, Listed> numbered = new HashMap<>();
        for (int i = 0; i < tests.size(); i++) {
            Listed test = tests.get(i);
            test.copy = copies.merge(test.id, 1, Integer::sum) - 1;
            test.place = i;
            numbered.put(test.copy + " " + test.id, test);
        }
        return numbered;
    }

    /** The jars that the tests run with, each with its size and time: a version can be built again. */
    private static List<Object> installed() {
        SortedSet<String> found = new TreeSet<>();
        for (String property : new String[] {"java.class.path", "jdk.module.path"}) {
            for (String entry : System.getProperty(property, "").split(File.pathSeparator)) {
                File file = new File(entry);
                if (file.isFile()) {
                    found.add(file.getName() + " " + file.length() + " " + file.lastModified());
                }
            }
        }
        return new ArrayList<>(found);
    }

    private Sources sources() {
        List<String> roots = new ArrayList<>(plan.texts("test_sources"));
        roots.addAll(plan.texts("sources"));
        roots.addAll(plan.texts("other_sources"));
        return new Sources(roots, plan.text("root"));
    }

    /** The classes that Surefire runs; where one test alone is wanted, its own, if it has a class by its name. */
    private List<String> wantedClasses() {
        List<String> all = RunOrder.sort(plan.texts("tests"), plan.settings());
        List<String> wanted = new ArrayList<>();
        for (String test : only) {
            wanted.addAll(classesOf(test, all));
        }
        return wanted.isEmpty() ? all : wanted;
    }

    /** The classes among {@code all} to which a test may belong. */
    private static List<String> classesOf(String test, List<String> all) {
        String own = test.contains("#") ? test.substring(0, test.indexOf('#')) : test;
        List<String> found = new ArrayList<>(all);
        found.removeIf(name -> !own.equals(name) && !own.startsWith(name + "$"));
        return found;
    }

    private List<Listed> list(List<Class<?>> classes, List<Object> errors) {
        try {
            return backend.list(classes);
        } catch (RuntimeException | LinkageError error) {
            // One class spoils the list of all: each by itself, then, and what cannot be listed is told.
            List<Listed> tests = new ArrayList<>();
            for (Class<?> type : classes) {
                try {
                    List<Class<?>> one = new ArrayList<>();
                    one.add(type);
                    tests.addAll(backend.list(one));
                } catch (RuntimeException | LinkageError own) {
                    errors.add(Json.object("where", type.getName(), "text", Texts.trace(own)));
                }
            }
            return tests;
        }
    }

    private List<Name> tests(Map<String, Object> command) {
        List<Name> names = new ArrayList<>();
        for (Object one : (List<?>) command.get("tests")) {
            names.add(new Name((Map<?, ?>) one));
        }
        return names;
    }

    /** Runs tests in order; those of a class that follow each other as the class has them, together. */
    private void run(List<Name> names, boolean holdsAfterFailure) {
        int at = 0;
        while (at < names.size()) {
            List<Listed> segment = segment(names, at);
            if (segment.isEmpty()) {
                names.get(at).unknown(channel);
                return;
            }
            at += segment.size();
            Run run = new Run(channel, outputs, failures, segment, at == names.size(), holdsAfterFailure);
            backend.run(segment.get(0).group, segment, run);
            if (run.finish("plain")) {
                return;
            }
        }
    }

    private List<Listed> segment(List<Name> names, int start) {
        List<Listed> segment = new ArrayList<>();
        for (int i = start; i < names.size(); i++) {
            Listed test = known.get(names.get(i).key());
            if (test == null) {
                break;
            }
            if (!segment.isEmpty()) {
                Listed last = segment.get(segment.size() - 1);
                if (test.group != last.group || test.place <= last.place) {
                    break;
                }
            }
            segment.add(test);
        }
        return segment;
    }

    private void rerun(Map<String, Object> command) {
        Name name = new Name(command);
        Listed test = known.get(name.key());
        if (test == null) {
            name.unknown(channel);
            return;
        }
        once(test, true, Fixtures.isShared(test.group) ? "rebuilt" : "plain");
    }

    private void once(Listed test, boolean isLast, String fixtures) {
        List<Listed> segment = new ArrayList<>();
        segment.add(test);
        Run run = new Run(channel, outputs, failures, segment, isLast, false);
        backend.run(test.group, segment, run);
        if (reloading != null && run.isOutOfMemory()) {
            reloading.wearOut();
        }
        run.finish(fixtures);
    }

    /** The folders on the class path: what is the project's own. */
    private List<String> folders() {
        List<String> folders = new ArrayList<>(plan.texts("classpath"));
        folders.removeIf(part -> part.endsWith(".jar"));
        return folders;
    }

    private State state() {
        if (state == null) {
            List<String> folders = folders();
            String own = "used-" + Integer.toHexString(only.hashCode());
            state = new State(folders, new File(folder, own).toPath(),
                    new File(folder, vm + ".initialised"), new Disk(plan.text("root")));
        }
        return state;
    }

    private void compare() {
        Set<String> unseen = new LinkedHashSet<>();
        List<Object> pieces = state().compare(unseen);
        channel.say("say", "changed", "pieces", pieces, "unseen", new ArrayList<Object>(unseen));
    }

    private void putBack(Object keys) {
        if (!(keys instanceof List) || ((List<?>) keys).isEmpty()) {
            return;
        }
        try {
            state().restore((List<?>) keys);
        } catch (ReflectiveOperationException | RuntimeException closed) {
            // Then the test ends as it did before, and nothing is claimed.
            return;
        }
    }

    private void twice(Map<String, Object> command) {
        if (Boolean.TRUE.equals(command.get("apart"))) {
            channel.say("say", "unforked", "vm", null, "why", "a JVM cannot be copied");
            return;
        }
        putBack(command.get("restore"));
        List<Name> names = tests(command);
        Object between = command.get("between");
        if (between == null) {
            run(names, false);
            return;
        }
        boolean isReloaded = Boolean.TRUE.equals(command.get("reload"));
        if (isReloaded && !canReload()) {
            channel.say("say", "unforked", "vm", null, "why", "the JVM has no room for more classes");
            return;
        }
        for (int i = 0; i < names.size(); i++) {
            Name name = names.get(i);
            boolean isLast = i + 1 == names.size();
            if (isReloaded) {
                reloading.with(loader -> inPair(name, anew(name, loader), between, isLast));
            } else {
                inPair(name, known.get(name.key()), between, isLast);
            }
        }
    }

    private void inPair(Name name, Listed test, Object between, boolean isLast) {
        if (test == null) {
            name.unknown(channel);
            name.unknown(channel);
            return;
        }
        once(test, false, "plain");
        if (between.equals("collect")) {
            System.gc();
        }
        once(test, isLast, "plain");
    }

    private boolean canReload() {
        if (reloading == null) {
            reloading = new Reloading(folders(), Guest.class.getClassLoader());
        }
        return reloading.hasRoom();
    }

    /** A test of classes that a loader of their own loads; null if it is not found there. */
    private Listed anew(Name name, ClassLoader loader) {
        List<Class<?>> classes = new ArrayList<>();
        try {
            for (String type : classesOf(name.test, plan.texts("tests"))) {
                classes.add(Class.forName(type, false, loader));
            }
            return number(backend.list(classes)).get(name.key());
        } catch (ClassNotFoundException | RuntimeException | LinkageError unlisted) {
            return null;
        }
    }

    /** A test as a command names it. */
    private static final class Name {
        private final String test;
        private final long copy;

        Name(Map<?, ?> words) {
            test = String.valueOf(words.get("test"));
            copy = ((Number) words.get("copy")).longValue();
        }

        String key() {
            return copy + " " + test;
        }

        void unknown(Channel channel) {
            channel.say("say", "unknown", "test", test, "copy", copy);
        }
    }
}
