package unflake.junit;

import java.lang.annotation.Annotation;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Field;
import java.lang.reflect.Method;

/** Whether the tests of a class share something that is set up for the class. */
final class Fixtures {
    private Fixtures() {
    }

    static boolean isShared(Class<?> group) {
        for (Class<?> type = group; type != null && type != Object.class; type = type.getSuperclass()) {
            try {
                for (Method method : type.getDeclaredMethods()) {
                    if (isMarked(method)) {
                        return true;
                    }
                }
                for (Field field : type.getDeclaredFields()) {
                    if (isMarked(field)) {
                        return true;
                    }
                }
            } catch (LinkageError unreadable) {
                return true;
            }
        }
        return false;
    }

    private static boolean isMarked(AnnotatedElement element) {
        for (Annotation annotation : element.getAnnotations()) {
            String name = annotation.annotationType().getName();
            if (name.equals("org.junit.BeforeClass") || name.equals("org.junit.ClassRule")
                    || name.equals("org.junit.jupiter.api.BeforeAll")) {
                return true;
            }
        }
        return false;
    }
}
