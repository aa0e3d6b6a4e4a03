package unflake.junit;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.Ignore;
import org.junit.Test;
import org.junit.experimental.categories.Category;
import org.junit.runner.Description;
import org.junit.runner.Request;
import org.junit.runner.RunWith;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;
import org.junit.runner.notification.RunNotifier;

/** JUnit 4 without the Platform, as Surefire's providers for JUnit 4 use it; it runs JUnit 3 classes too. */
final class JUnit4 implements Backend {
    private static final Pattern NAME = Pattern.compile("(.*)\\((.*)\\)", Pattern.DOTALL);

    private final Selection selection;

    JUnit4(Selection selection) {
        this.selection = selection;
    }

    @Override
    public String name() {
        return "JUnit";
    }

    @Override
    public String version() {
        try {
            Class<?> version = Class.forName("junit.runner.Version");
            return String.valueOf(version.getMethod("id").invoke(null));
        } catch (ReflectiveOperationException error) {
            return "4";
        }
    }

    @Override
    public List<Listed> list(List<Class<?>> classes) {
        List<Listed> tests = new ArrayList<>();
        for (Class<?> type : classes) {
            if (!isTest(type)) {
                continue;
            }
            Ignore ignore = type.getAnnotation(Ignore.class);
            if (ignore != null) {
                for (String method : ignoredMethods(type)) {
                    add(tests, new Listed(type, type.getName(), method, method, ignore.value()));
                }
                continue;
            }
            Description description = Request.aClass(type).getRunner().getDescription();
            Map<Description, Listed> leaves = new LinkedHashMap<>();
            collect(type, description, leaves);
            for (Listed test : leaves.values()) {
                add(tests, test);
            }
        }
        return tests;
    }

    private void add(List<Listed> tests, Listed test) {
        if (selection.isWanted(test.className, test.method)) {
            tests.add(test);
        }
    }

    private void collect(Class<?> group, Description description, Map<Description, Listed> leaves) {
        for (Description child : description.getChildren()) {
            collect(group, child, leaves);
        }
        if (description.isTest() && isInGroups(group, description)) {
            leaves.put(description, listed(group, description));
        }
    }

    private static Listed listed(Class<?> group, Description description) {
        Matcher name = NAME.matcher(description.getDisplayName());
        if (name.matches()) {
            String method = name.group(1);
            return new Listed(group, name.group(2), method, method, description);
        }
        String whole = description.getDisplayName();
        return new Listed(group, group.getName(), whole, whole, description);
    }

    private boolean isInGroups(Class<?> group, Description description) {
        if (!selection.hasGroups()) {
            return true;
        }
        List<Class<?>> categories = new ArrayList<>();
        Category own = description.getAnnotation(Category.class);
        if (own != null) {
            categories.addAll(Arrays.asList(own.value()));
        }
        for (Class<?> type = group; type != null; type = type.getSuperclass()) {
            Category all = type.getAnnotation(Category.class);
            if (all != null) {
                categories.addAll(Arrays.asList(all.value()));
                break;
            }
        }
        return selection.isInGroups(categories);
    }

    /** The test methods of a class that is ignored as a whole. */
    private static List<String> ignoredMethods(Class<?> type) {
        List<String> methods = new ArrayList<>();
        for (Method method : type.getMethods()) {
            boolean isOld = method.getName().startsWith("test") && method.getParameterCount() == 0 && isJUnit3(type);
            boolean isTest = isOld || method.isAnnotationPresent(Test.class);
            if (isTest && !methods.contains(method.getName())) {
                methods.add(method.getName());
            }
        }
        if (methods.isEmpty()) {
            // Its runner would have made its tests.
            methods.add(type.getSimpleName());
        }
        Collections.sort(methods);
        return methods;
    }

    /** Whether a class that the name patterns name has tests, as Surefire decides it. */
    private static boolean isTest(Class<?> type) {
        if (Modifier.isAbstract(type.getModifiers()) || type.isInterface() || type.isAnnotation()) {
            return false;
        }
        return type.isAnnotationPresent(RunWith.class) || isJUnit3(type) || hasTestMethods(type);
    }

    private static boolean isJUnit3(Class<?> type) {
        try {
            if (Class.forName("junit.framework.Test", false, type.getClassLoader()).isAssignableFrom(type)) {
                return true;
            }
            Method suite = type.getMethod("suite");
            return Modifier.isStatic(suite.getModifiers());
        } catch (ReflectiveOperationException | LinkageError none) {
            return false;
        }
    }

    private static boolean hasTestMethods(Class<?> type) {
        for (Class<?> one = type; one != null && one != Object.class; one = one.getSuperclass()) {
            if (one.isAnnotationPresent(RunWith.class)) {
                return true;
            }
            for (Method method : one.getDeclaredMethods()) {
                if (method.isAnnotationPresent(Test.class)) {
                    return true;
                }
            }
        }
        return false;
    }

    @Override
    public void run(Class<?> group, List<Listed> tests, Watcher watcher) {
        Map<Description, Listed> wanted = new HashMap<>();
        for (Listed test : tests) {
            if (test.key instanceof Description) {
                wanted.put((Description) test.key, test);
            } else {
                watcher.started(test);
                watcher.ended(test, Ended.skipped((String) test.key));
            }
        }
        if (wanted.isEmpty()) {
            return;
        }
        RunNotifier notifier = new RunNotifier();
        notifier.addListener(new Listener(wanted, watcher));
        Request.aClass(group).filterWith(new Only(wanted)).getRunner().run(notifier);
    }

    /** Lets the wanted tests run. */
    private static final class Only extends Filter {
        private final Map<Description, Listed> wanted;

        Only(Map<Description, Listed> wanted) {
            this.wanted = wanted;
        }

        @Override
        public boolean shouldRun(Description description) {
            if (description.isTest()) {
                return wanted.containsKey(description);
            }
            for (Description child : description.getChildren()) {
                if (shouldRun(child)) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public String describe() {
            return "the tests that unflake asked for";
        }
    }

    private static final class Listener extends RunListener {
        private final Map<Description, Listed> wanted;
        private final Watcher watcher;
        private final Map<Description, Ended> open = new HashMap<>();

        Listener(Map<Description, Listed> wanted, Watcher watcher) {
            this.wanted = wanted;
            this.watcher = watcher;
        }

        @Override
        public void testStarted(Description description) {
            Listed test = wanted.get(description);
            if (test != null) {
                open.put(description, Ended.PASSED);
                watcher.started(test);
            }
        }

        @Override
        public void testFailure(Failure failure) {
            Ended before = open.get(failure.getDescription());
            if (before == null) {
                watcher.groupFailed(failure.getException());
            } else {
                Ended now = Ended.failed(failure.getException());
                open.put(failure.getDescription(), before.isFailure() ? before : now);
            }
        }

        @Override
        public void testAssumptionFailure(Failure failure) {
            Ended skipped = Ended.skipped(Texts.message(failure.getException()));
            Description description = failure.getDescription();
            if (open.containsKey(description)) {
                open.put(description, skipped);
                return;
            }
            // The class as a whole makes an assumption.
            for (Listed test : wanted.values()) {
                watcher.started(test);
                watcher.ended(test, skipped);
            }
        }

        @Override
        public void testIgnored(Description description) {
            Ignore ignore = description.getAnnotation(Ignore.class);
            Ended skipped = Ended.skipped(ignore == null ? "" : ignore.value());
            Listed test = wanted.get(description);
            if (test != null) {
                watcher.started(test);
                watcher.ended(test, skipped);
            }
        }

        @Override
        public void testFinished(Description description) {
            Listed test = wanted.get(description);
            Ended ended = open.remove(description);
            if (test != null && ended != null) {
                watcher.ended(test, ended);
            }
        }
    }
}
