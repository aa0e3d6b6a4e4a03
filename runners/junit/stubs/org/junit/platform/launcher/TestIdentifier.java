package org.junit.platform.launcher;

import java.util.Optional;

import org.junit.platform.engine.TestSource;

public final class TestIdentifier {
    public String getUniqueId() {
        return null;
    }

    public String getDisplayName() {
        return null;
    }

    public String getLegacyReportingName() {
        return null;
    }

    public boolean isTest() {
        return false;
    }

    public boolean isContainer() {
        return false;
    }

    public Optional<TestSource> getSource() {
        return null;
    }
}
