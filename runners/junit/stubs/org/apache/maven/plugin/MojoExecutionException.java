package org.apache.maven.plugin;

public class MojoExecutionException extends Exception {
    private static final long serialVersionUID = 1;

    public MojoExecutionException(String message, Exception cause) {
        super(message, cause);
    }
}
