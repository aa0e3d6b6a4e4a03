package org.junit.platform.engine.discovery;

public final class DiscoverySelectors {
    private DiscoverySelectors() {
    }

    public static ClassSelector selectClass(Class<?> type) {
        return null;
    }

    public static UniqueIdSelector selectUniqueId(String uniqueId) {
        return null;
    }
}
