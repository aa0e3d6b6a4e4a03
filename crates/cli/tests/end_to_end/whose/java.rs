//! The same questions for JUnit under Maven.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::history::{Edit, History, Way};
use crate::junit::has_maven;

/// A project of JUnit 4 whose tests run in the order of their names, and a coin as in `history.rs`.
pub(super) const PROJECT: &str = r#"
=== pom.xml
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>shop</groupId>
  <artifactId>whose</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency>
      <groupId>junit</groupId>
      <artifactId>junit</artifactId>
      <version>4.13.2</version>
      <scope>test</scope>
    </dependency>
  </dependencies>
  <build>
    <plugins>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId>
        <version>2.22.2</version>
      </plugin>
    </plugins>
  </build>
</project>
=== README.md
Tea.
=== src/main/java/shop/Coin.java
package shop;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;

class Coin {
    static boolean toss() {
        try {
            Path path = Paths.get(System.getenv("OUTSIDE"), "coin");
            Files.write(path, new byte[1], StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            return Long.bitCount(Files.size(path)) % 2 == 0;
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }
}
=== src/main/java/shop/Shop.java
package shop;

import java.util.HashMap;
import java.util.Map;

class Shop {
    static final Map<String, Integer> PRICES = new HashMap<>();

    static {
        PRICES.put("tea", 100);
    }

    static int price(String item) {
        return PRICES.get(item);
    }

    static int reduced(String item, int percent) {
        return price(item) * (100 - percent) / 100;
    }

    static String pick(String... items) {
        return items[0];
    }

    static String name() {
        return "shop";
    }
}
=== src/test/java/shop/ShopTest.java
package shop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.FixMethodOrder;
import org.junit.Test;
import org.junit.runners.MethodSorters;

@FixMethodOrder(MethodSorters.NAME_ASCENDING)
public class ShopTest {
    @Test
    public void aReduced() {
        assertEquals(90, Shop.reduced("tea", 10));
    }

    @Test
    public void bPrice() {
        assertEquals(100, Shop.price("tea"));
    }

    @Test
    public void cPick() {
        assertEquals("tea", Shop.pick("tea", "mug"));
    }
}
"#;

pub(super) const SHOP: &str = "src/main/java/shop/Shop.java";
const TEST: &str = "src/test/java/shop/ShopTest.java";

/// One project of Maven at a time: its local repository is not made for several at once.
pub(super) fn turn() -> Option<MutexGuard<'static, ()>> {
    static ONE: Mutex<()> = Mutex::new(());
    has_maven().then(|| ONE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// The base passes, the change makes a test fail, and it is the change's at home and in a CI.
fn yours(test: &str, edits: &[Edit], because: &[&str]) {
    let Some(_turn) = turn() else {
        return;
    };
    for ci in [false, true] {
        let history = History::of_maven(PROJECT);
        history.run(&["--no-record"]).ends(0);
        history.change(Way::Branch, edits);
        if ci {
            history.set("CI", "true");
        }
        history.run(&[]).ends(1).is(test, "yours", because);
    }
}

#[test]
fn a_static_map_that_is_changed_in_place() {
    let edit = (
        SHOP,
        "        return price(item) * (100 - percent) / 100;",
        "        return PRICES.merge(item, 100 - percent, (old, part) -> old * part / 100);",
    );
    yours("shop.ShopTest#bPrice", &[edit], &["fails-more"]);
}

#[test]
fn a_test_that_no_longer_restores_a_property() {
    let restored = "        String before = System.getProperty(\"shop\", \"\");\n        \
                    System.setProperty(\"shop\", \"x\");\n        \
                    System.setProperty(\"shop\", before);\n        assertEquals(90,";
    let tested = "        assertEquals(\"\", System.getProperty(\"shop\", \"\"));\n        assertEquals(100,";
    let Some(_turn) = turn() else {
        return;
    };
    let base = PROJECT
        .replace("        assertEquals(90,", restored)
        .replace("        assertEquals(100,", tested);
    let history = History::of_maven(&base);
    history.run(&["--no-record"]).ends(0);
    let edit = (TEST, "        System.setProperty(\"shop\", before);\n", "");
    history.change(Way::Branch, &[edit]);
    history
        .run(&[])
        .ends(1)
        .is("shop.ShopTest#bPrice", "yours", &["fails-more"]);
}

#[test]
fn a_choice_by_chance() {
    let edit = (SHOP, "items[0]", "items[Coin.toss() ? 0 : 1]");
    yours("shop.ShopTest#cPick", &[edit], &["fails-more"]);
}

#[test]
fn a_new_flaky_test() {
    let new = "    @Test\n    public void dNew() {\n        assertTrue(Coin.toss());\n    }\n\n    \
               @Test\n    public void cPick";
    let edit = (TEST, "    @Test\n    public void cPick", new);
    yours("shop.ShopTest#dNew", &[edit], &["new-test"]);
}

#[test]
fn a_new_test_that_pollutes_an_old_one() {
    let new = "    @Test\n    public void bNew() {\n        Shop.PRICES.put(\"tea\", 1);\n        \
               assertEquals(1, Shop.price(\"tea\"));\n    }\n\n    @Test\n    public void bPrice";
    let edit = (TEST, "    @Test\n    public void bPrice", new);
    yours("shop.ShopTest#bPrice", &[edit], &["fails-more", "exposed"]);
}

#[test]
fn a_bug() {
    let edit = (SHOP, "return PRICES.get(item)", "return 7");
    yours("shop.ShopTest#bPrice", &[edit], &["fails-more"]);
}

/// A project with an old coin in its product.
fn old_coin() -> String {
    PROJECT.replace(
        "        return items[0];",
        "        return items[Coin.toss() || name() == null ? 0 : 1];",
    )
}

#[test]
fn an_old_coin_is_not_yours() {
    let Some(_turn) = turn() else {
        return;
    };
    let test = "shop.ShopTest#cPick";
    let history = History::of_maven(&old_coin());
    history.change(Way::Branch, &[("README.md", "Tea", "Coffee")]);
    let said = history.run(&[]);
    said.ends(0)
        .is(test, "not-yours", &["untouched", "at-base"]);
    said.fails_as(test, "flaky");

    let history = History::of_maven(&old_coin());
    history.change(Way::Branch, &[(SHOP, "\"shop\"", "\"store\"")]);
    let said = history.run(&["--check-base"]);
    said.ends(0).is(test, "not-yours", &["at-base"]);
}

#[test]
fn a_renamed_or_moved_test_is_compared_with_its_old_id() {
    let Some(_turn) = turn() else {
        return;
    };
    let history = History::of_maven(&old_coin());
    history.change(
        Way::Branch,
        &[
            (TEST, "void cPick", "void cChosen"),
            (SHOP, "\"shop\"", "\"store\""),
        ],
    );
    let test = "shop.ShopTest#cChosen";
    let said = history.run(&["--check-base"]);
    said.ends(0).is(test, "not-yours", &["at-base"]);

    let history = History::of_maven(&old_coin());
    history.begin(Way::Branch);
    let moved = "src/test/java/shop/TradeTest.java";
    history.git(&["mv", TEST, moved]);
    history.edit(&[
        (moved, "class ShopTest", "class TradeTest"),
        (SHOP, "\"shop\"", "\"store\""),
    ]);
    history.end(Way::Branch);
    let test = "shop.TradeTest#cPick";
    let said = history.run(&["--check-base"]);
    said.ends(0).is(test, "not-yours", &["at-base"]);
}

#[test]
fn an_old_bug_is_not_yours_and_is_forgiven_on_demand() {
    let Some(_turn) = turn() else {
        return;
    };
    let test = "shop.ShopTest#cPick";
    let history = History::of_maven(&PROJECT.replace("items[0]", "\"mug\""));
    history.change(Way::Branch, &[(SHOP, "\"shop\"", "\"store\"")]);
    let said = history.run(&[]);
    said.ends(1).is(test, "not-yours", &["at-base"]);
    said.fails_as(test, "broken");
    history.run(&["--forgive", "pre-existing"]).ends(0);
}

#[test]
fn a_fresh_jvm_has_the_agents_of_the_suites() {
    let Some(_turn) = turn() else {
        return;
    };
    let agent = "    <plugins>\n      <plugin>\n        <groupId>org.jacoco</groupId>\n        \
                 <artifactId>jacoco-maven-plugin</artifactId>\n        <version>0.8.11</version>\n        \
                 <executions>\n          <execution>\n            <goals>\n              \
                 <goal>prepare-agent</goal>\n            </goals>\n          </execution>\n        \
                 </executions>\n      </plugin>\n";
    let asks = "        String line = java.lang.management.ManagementFactory.getRuntimeMXBean()\n            \
                .getInputArguments().toString();\n        assertTrue(line, line.contains(\"jacoco\"));\n        \
                assertTrue(Coin.toss());\n        assertEquals(\"tea\",";
    let base = PROJECT
        .replace("    <plugins>\n", agent)
        .replace("        assertEquals(\"tea\",", asks);
    let history = History::of_maven(&base);
    history.change(Way::Branch, &[("README.md", "Tea", "Coffee")]);
    let said = history.run(&["--immediate", "0", "--end", "0", "--fresh", "3"]);
    let test = "shop.ShopTest#cPick";
    said.fails_as(test, "flaky");
    for attempt in said.finding(test)["attempts"].as_array().unwrap() {
        let message = attempt["message"].as_str().unwrap_or_default();
        assert!(!message.contains("-D"), "{said}");
    }
}
