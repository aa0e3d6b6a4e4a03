package org.junit.platform.launcher;

import org.junit.platform.engine.Filter;

public interface PostDiscoveryFilter extends Filter<Object> {
}
