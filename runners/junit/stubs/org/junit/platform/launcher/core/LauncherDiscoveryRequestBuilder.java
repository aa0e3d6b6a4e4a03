package org.junit.platform.launcher.core;

import java.util.List;
import java.util.Map;

import org.junit.platform.engine.DiscoverySelector;
import org.junit.platform.engine.Filter;
import org.junit.platform.launcher.LauncherDiscoveryRequest;

public final class LauncherDiscoveryRequestBuilder {
    public static LauncherDiscoveryRequestBuilder request() {
        return null;
    }

    public LauncherDiscoveryRequestBuilder selectors(List<? extends DiscoverySelector> selectors) {
        return null;
    }

    public LauncherDiscoveryRequestBuilder filters(Filter<?>... filters) {
        return null;
    }

    public LauncherDiscoveryRequestBuilder configurationParameters(Map<String, String> parameters) {
        return null;
    }

    public LauncherDiscoveryRequest build() {
        return null;
    }
}
