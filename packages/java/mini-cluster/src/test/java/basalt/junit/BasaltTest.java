package basalt.junit;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;

/** Stands in for Basalt's annotation, so that the sample's tests run unchanged on HBase's mini cluster. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@ExtendWith(MiniClusterExtension.class)
public @interface BasaltTest {}
