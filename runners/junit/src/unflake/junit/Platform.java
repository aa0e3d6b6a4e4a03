package unflake.junit;

import java.io.IOException;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.Filter;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.TestSource;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.ClassSource;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.EngineFilter;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * The JUnit Platform in the project's own version: Jupiter, Vintage and other engines.
 *
 * <p>A method that makes tests while it runs (a parametrised or repeated test, a test factory) is one test
 * here: what it makes is not known before it has run.
 */
final class Platform implements Backend {
    private final Selection selection;
    private final Map<String, Object> settings;
    private final Launcher launcher = LauncherFactory.create();

    Platform(Selection selection, Map<String, Object> settings) {
        this.selection = selection;
        this.settings = settings;
    }

    @Override
    public String name() {
        return "JUnit Platform";
    }

    @Override
    public String version() {
        String version = Launcher.class.getPackage().getImplementationVersion();
        return version == null ? "1" : version;
    }

    @Override
    public List<Listed> list(List<Class<?>> classes) {
        Map<String, Class<?>> byName = new HashMap<>();
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (Class<?> type : classes) {
            byName.put(type.getName(), type);
            selectors.add(DiscoverySelectors.selectClass(type));
        }
        TestPlan plan = launcher.discover(request(selectors, true));
        List<Listed> tests = new ArrayList<>();
        for (TestIdentifier root : plan.getRoots()) {
            collect(plan, root, null, byName, tests);
        }
        return tests;
    }

    private void collect(TestPlan plan, TestIdentifier node, Class<?> group, Map<String, Class<?>> byName,
            List<Listed> tests) {
        Class<?> own = group;
        TestSource source = node.getSource().orElse(null);
        if (source instanceof ClassSource && group == null) {
            own = byName.get(((ClassSource) source).getClassName());
        }
        boolean isLeaf = node.isTest() || source instanceof MethodSource && plan.getChildren(node).isEmpty();
        if (isLeaf && own != null) {
            Listed test = listed(plan, node, own);
            if (selection.isWanted(test.className, test.method)) {
                tests.add(test);
            }
        }
        for (TestIdentifier child : plan.getChildren(node)) {
            collect(plan, child, own, byName, tests);
        }
    }

    private static Listed listed(TestPlan plan, TestIdentifier node, Class<?> group) {
        TestSource source = node.getSource().orElse(null);
        if (source instanceof MethodSource) {
            MethodSource method = (MethodSource) source;
            String name = method.getMethodName();
            boolean isVintage = node.getUniqueId().contains("[engine:junit-vintage]");
            if (isVintage) {
                String legacy = node.getLegacyReportingName();
                name = legacy == null || legacy.isEmpty() ? name : legacy;
            } else {
                name += parameters(method.getMethodParameterTypes());
            }
            return new Listed(group, method.getClassName(), name, method.getMethodName(), node.getUniqueId());
        }
        String className = group.getName();
        Optional<TestIdentifier> parent = plan.getParent(node);
        while (parent.isPresent()) {
            TestSource above = parent.get().getSource().orElse(null);
            if (above instanceof ClassSource) {
                className = ((ClassSource) above).getClassName();
                break;
            }
            parent = plan.getParent(parent.get());
        }
        String name = node.getLegacyReportingName();
        return new Listed(group, className, name, name, node.getUniqueId());
    }

    /** The types of parameters as a reader knows them, in brackets; nothing for none. */
    private static String parameters(String types) {
        if (types == null || types.trim().isEmpty()) {
            return "";
        }
        List<String> simple = new ArrayList<>();
        for (String type : types.split(",")) {
            String plain = type.trim();
            simple.add(plain.substring(Math.max(plain.lastIndexOf('.'), plain.lastIndexOf('$')) + 1));
        }
        return "(" + String.join(", ", simple) + ")";
    }

    private LauncherDiscoveryRequest request(List<DiscoverySelector> selectors, boolean isFiltered) {
        List<Filter<?>> filters = new ArrayList<>();
        String include = text("includejunit5engines");
        String exclude = text("excludejunit5engines");
        if (!include.isEmpty()) {
            filters.add(EngineFilter.includeEngines(split(include)));
        }
        if (!exclude.isEmpty()) {
            filters.add(EngineFilter.excludeEngines(split(exclude)));
        }
        if (isFiltered && !text("groups").isEmpty()) {
            filters.add(TagFilter.includeTags(split(text("groups"))));
        }
        if (isFiltered && !text("excludegroups").isEmpty()) {
            filters.add(TagFilter.excludeTags(split(text("excludegroups"))));
        }
        LauncherDiscoveryRequestBuilder builder = LauncherDiscoveryRequestBuilder.request().selectors(selectors)
                .configurationParameters(parameters());
        if (!filters.isEmpty()) {
            builder = builder.filters(filters.toArray(new Filter<?>[0]));
        }
        return builder.build();
    }

    /** The project's configuration parameters; tests run one after the other, whatever it says. */
    private Map<String, String> parameters() {
        Properties properties = new Properties();
        try {
            properties.load(new StringReader(text("configurationParameters")));
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
        Map<String, String> parameters = new LinkedHashMap<>();
        for (String name : properties.stringPropertyNames()) {
            parameters.put(name, properties.getProperty(name));
        }
        parameters.put("junit.jupiter.execution.parallel.enabled", "false");
        return parameters;
    }

    private String text(String setting) {
        Object value = settings.get(setting);
        return value == null ? "" : value.toString();
    }

    private static String[] split(String list) {
        return list.trim().split("\\s*,\\s*");
    }

    @Override
    public void run(Class<?> group, List<Listed> tests, Watcher watcher) {
        Map<String, Listed> wanted = new LinkedHashMap<>();
        List<DiscoverySelector> selectors = new ArrayList<>();
        for (Listed test : tests) {
            wanted.put((String) test.key, test);
            selectors.add(DiscoverySelectors.selectUniqueId((String) test.key));
        }
        launcher.execute(request(selectors, false), new Listener(wanted, watcher));
    }

    /** The number in a part of a unique id. */
    private static final Pattern NUMBER = Pattern.compile(":#([0-9]+)\\]");

    private static final class Listener implements TestExecutionListener {
        private final Map<String, Listed> wanted;
        private final Watcher watcher;
        /** The ends of the parts of a test so far. */
        private final Map<Listed, Ended> parts = new HashMap<>();
        private final Map<Listed, Boolean> begun = new HashMap<>();
        private TestPlan plan;

        Listener(Map<String, Listed> wanted, Watcher watcher) {
            this.wanted = wanted;
            this.watcher = watcher;
        }

        @Override
        public void testPlanExecutionStarted(TestPlan started) {
            plan = started;
        }

        /** The wanted test that this is, or is a part of. */
        private Listed owner(TestIdentifier node) {
            Listed test = wanted.get(node.getUniqueId());
            Optional<TestIdentifier> parent = plan.getParent(node);
            return test != null || !parent.isPresent() ? test : owner(parent.get());
        }

        @Override
        public void executionStarted(TestIdentifier node) {
            Listed test = wanted.get(node.getUniqueId());
            if (test != null) {
                begun.put(test, true);
                watcher.started(test);
            }
        }

        @Override
        public void executionSkipped(TestIdentifier node, String reason) {
            Ended skipped = Ended.skipped(reason);
            Listed test = wanted.get(node.getUniqueId());
            if (test != null) {
                watcher.started(test);
                watcher.ended(test, skipped);
                return;
            }
            Listed owner = owner(node);
            if (owner != null) {
                parts.merge(owner, skipped, Ended::and);
                return;
            }
            for (Listed below : below(node)) {
                watcher.started(below);
                watcher.ended(below, skipped);
            }
        }

        @Override
        public void executionFinished(TestIdentifier node, TestExecutionResult result) {
            Listed test = wanted.get(node.getUniqueId());
            Throwable error = result.getThrowable().orElse(null);
            if (test != null) {
                Ended own = ended(result, error);
                Ended all = parts.remove(test);
                watcher.ended(test, own.isFailure() || all == null ? own : all);
                return;
            }
            Listed owner = owner(node);
            if (owner != null) {
                if (node.isTest() || error != null) {
                    Ended part = ended(result, error).of(number(node, owner), node.getDisplayName());
                    parts.merge(owner, part, Ended::and);
                }
                return;
            }
            if (result.getStatus() == TestExecutionResult.Status.FAILED && error != null) {
                watcher.groupFailed(error);
            } else if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
                for (Listed below : below(node)) {
                    if (!begun.containsKey(below)) {
                        watcher.started(below);
                        watcher.ended(below, ended(result, error));
                    }
                }
            }
        }

        /** The number of a part in its test, with those of the parts around it. */
        private static String number(TestIdentifier node, Listed owner) {
            String below = node.getUniqueId().substring(String.valueOf(owner.key).length());
            List<String> numbers = new ArrayList<>();
            for (Matcher number = NUMBER.matcher(below); number.find();) {
                numbers.add(number.group(1));
            }
            return String.join(".", numbers);
        }

        private List<Listed> below(TestIdentifier node) {
            List<Listed> found = new ArrayList<>();
            for (TestIdentifier child : plan.getChildren(node)) {
                Listed test = wanted.get(child.getUniqueId());
                if (test != null) {
                    found.add(test);
                } else {
                    found.addAll(below(child));
                }
            }
            return found;
        }

        private static Ended ended(TestExecutionResult result, Throwable error) {
            switch (result.getStatus()) {
                case SUCCESSFUL:
                    return Ended.PASSED;
                case ABORTED:
                    return Ended.skipped(error == null ? "" : Texts.message(error));
                default:
                    return Ended.failed(error == null ? new IllegalStateException("failed without a reason") : error);
            }
        }
    }
}
