package basalt.junit;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.parallel.ResourceLock;

/**
 * Each test of the class gets a server as a parameter, which is empty or has the tables of {@link #template}, in the form that it asks for: see {@link
 * BasaltExtension}. Such tests do not run beside each other in one JVM.
 */
@Documented
@Inherited
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.TYPE)
@ExtendWith(BasaltExtension.class)
@ResourceLock("basalt.junit.BasaltTest")
public @interface BasaltTest {
  /**
   * Whether the server has a certificate, and its users must log in. Connections are then encrypted and are those of its
   * superuser, which needs HBase's client 2.6 or newer.
   */
  boolean secure() default false;

  /** Creates and fills tables once; before each test of the class the server returns to them. By default it is empty. */
  Class<? extends BasaltTemplate> template() default BasaltTemplate.Empty.class;
}
