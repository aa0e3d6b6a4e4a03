package org.apache.maven.model;

public class Build extends BuildBase {
}
