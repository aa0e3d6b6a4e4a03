//! JUnit under Maven, where what a failing run used is not seen by the classes that it loads alone, and where a part of a
//! test or a report of a class is not the whole.

use super::history::{History, Way};
use super::java::{PROJECT, SHOP, turn};

/// The project with more in its test class.
fn with_tests(more: &str) -> String {
    let last = "        assertEquals(\"tea\", Shop.pick(\"tea\", \"mug\"));\n    }\n";
    assert!(PROJECT.contains(last));
    PROJECT.replace(last, &format!("{last}{more}"))
}

#[test]
fn files_that_only_maven_reads_or_that_are_only_looked_for() {
    let Some(_turn) = turn() else {
        return;
    };
    let tests = "
    @Test
    public void dFlag() {
        assertTrue(!new java.io.File(\"flags/beta\").exists());
    }

    @Test
    public void ePrice() throws Exception {
        java.util.Properties settings = new java.util.Properties();
        settings.load(ShopTest.class.getResourceAsStream(\"/shop.properties\"));
        assertEquals(\"100\", settings.getProperty(\"price\"));
    }
";
    let build = "  <build>\n    <filters>\n      <filter>build/values.txt</filter>\n    </filters>\n    \
                 <resources>\n      <resource>\n        <directory>conf</directory>\n        \
                 <filtering>true</filtering>\n      </resource>\n    </resources>\n";
    let base = with_tests(tests).replace("  <build>\n", build)
        + "=== build/values.txt\nvalue=100\n=== conf/shop.properties\nprice=${value}\n=== flags/alpha\n";
    let history = History::of_maven(&base);
    history.run(&["--no-record"]).ends(0);
    let edits = [
        ("build/values.txt", "value=100", "value=90"),
        ("flags/beta", "", "yes\n"),
    ];
    history.change(Way::Branch, &edits);
    let said = history.run(&["--check-base"]);
    said.ends(1);
    for test in ["shop.ShopTest#dFlag", "shop.ShopTest#ePrice"] {
        said.is(test, "not-known", &["unseen"]);
        said.fails_as(test, "broken");
    }
}

#[test]
fn a_class_in_another_folder_than_its_packages_and_one_that_ends_the_jvm() {
    let Some(_turn) = turn() else {
        return;
    };
    let tests = "
    @Test
    public void dTwice() {
        assertEquals(4, Twice.of(2));
    }

    @Test
    public void eFormat() {
        assertEquals(\"1.5\", String.format(\"%.1f\", 1.5));
    }

    @Test
    public void zEnd() {
        assertEquals(1, End.now());
    }
";
    let base = with_tests(tests)
        + "=== src/main/java/misc/Twice.java\npackage shop;\n\nclass Twice {\n    \
           static int of(int one) {\n        return 2 * one;\n    }\n}\n\
           === src/main/java/shop/End.java\npackage shop;\n\nclass End {\n    \
           static int now() {\n        return 1;\n    }\n}\n";
    let history = History::of_maven(&base);
    let leak = "java.util.Locale.setDefault(java.util.Locale.GERMANY);\n        return 2";
    let edits = [
        ("src/main/java/misc/Twice.java", "return 2", leak),
        (
            "src/main/java/shop/End.java",
            "return 1",
            "System.exit(1);\n        return 1",
        ),
    ];
    history.change(Way::Branch, &edits);
    let said = history.run(&["--check-base"]);
    said.ends(1);
    for test in ["shop.ShopTest#eFormat", "shop.ShopTest#zEnd"] {
        said.is(test, "yours", &["fails-more"]);
    }
}

#[test]
fn what_an_earlier_run_of_the_change_left_in_the_tree() {
    let Some(_turn) = turn() else {
        return;
    };
    let tests = "
    @Test
    public void aFirst() {
        assertTrue(!new java.io.File(\"target/work/cart\").exists());
    }

    @Test
    public void dStore() throws Exception {
        assertEquals(4, Store.put(4));
    }
";
    let base = with_tests(tests)
        + "=== src/main/java/shop/Store.java\npackage shop;\n\nclass Store {\n    \
           static int put(int one) throws Exception {\n        return one;\n    }\n}\n";
    let history = History::of_maven(&base);
    let leaves = "java.nio.file.Path folder = java.nio.file.Paths.get(\"target/work\");\n        \
                  java.nio.file.Files.createDirectories(folder);\n        \
                  java.nio.file.Files.write(folder.resolve(\"cart\"), new byte[1]);\n        return one";
    let edit = ("src/main/java/shop/Store.java", "return one", leaves);
    history.change(Way::Branch, &[edit]);
    history.run(&["--no-record"]).ends(0);
    history
        .run(&["--check-base"])
        .ends(1)
        .is("shop.ShopTest#aFirst", "not-known", &["unseen"]);
}

#[test]
fn an_old_coin_in_one_part_of_a_test_says_nothing_about_another_part() {
    let Some(_turn) = turn() else {
        return;
    };
    let jupiter = PROJECT
        .replace("<groupId>junit<", "<groupId>org.junit.jupiter<")
        .replace("<artifactId>junit<", "<artifactId>junit-jupiter<")
        .replace("<version>4.13.2<", "<version>5.10.2<")
        .replace("<version>2.22.2<", "<version>3.2.5<");
    let test = "=== src/test/java/shop/ShopTest.java
package shop;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.MethodOrderer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@TestMethodOrder(MethodOrderer.MethodName.class)
class ShopTest {
    @Test
    void aReduced() {
        assertEquals(90, Shop.reduced(\"tea\", 10));
    }

    @ParameterizedTest
    @ValueSource(strings = {\"mug\", \"tea\"})
    void bPrice(String item) {
        int price = item.equals(\"mug\") && !Coin.toss() ? 99 : Shop.price(\"tea\");
        assertEquals(100, item.equals(\"mug\") && price != 99 ? 100 : price);
    }
}
";
    let (others, _) = jupiter
        .split_once("=== src/test/java")
        .expect("the tests come last");
    let history = History::of_maven(&format!("{others}{test}"));
    let edit = (
        SHOP,
        "        return price(item) * (100 - percent) / 100;",
        "        return PRICES.merge(item, 100 - percent, (old, part) -> old * part / 100);",
    );
    history.change(Way::Branch, &[edit]);
    // Both sides fail half of the time, so that more runs would settle nothing.
    let said = history.run(&["--blame-budget", "30"]);
    said.ends(1);
    let whose = &said.finding("shop.ShopTest#bPrice(String)")["whose"];
    assert_ne!(whose["answer"], "not-yours", "{said}");
}

/// What Surefire writes about a class with one test.
fn surefire(history: &History, class: &str, test: &str, inside: &str) {
    let name = format!("target/surefire-reports/TEST-shop.{class}.xml");
    let case = format!(
        "<testcase name=\"{test}\" classname=\"shop.{class}\" time=\"0.1\">{inside}</testcase>"
    );
    let suite = format!("<testsuite name=\"shop.{class}\" tests=\"1\">{case}</testsuite>");
    history.write(&name, &suite);
}

#[test]
fn the_reports_of_a_folder_are_one_order_and_its_victim_is_named_with_the_polluter() {
    let Some(_turn) = turn() else {
        return;
    };
    let class = |name: &str, test: &str| {
        format!(
            "=== src/test/java/shop/{name}.java\npackage shop;\n\npublic class {name} {{\n    \
             @org.junit.Test\n    public void {test}\n}}\n"
        )
    };
    let reduces =
        "reduced() {\n        org.junit.Assert.assertEquals(90, Shop.reduced(\"tea\", 10));\n    }";
    let asks = "price() {\n        org.junit.Assert.assertEquals(100, Shop.price(\"tea\"));\n    }";
    let (others, _) = PROJECT
        .split_once("=== src/test/java")
        .expect("the tests come last");
    let order = "<version>2.22.2</version>\n        \
                 <configuration><runOrder>reversealphabetical</runOrder></configuration>";
    let others = others.replace("<version>2.22.2</version>", order);
    let base = [
        others,
        class("VictimTest", asks),
        class("WrongTest", reduces),
    ]
    .concat();
    let history = History::of_maven(&base);
    let edit = (
        SHOP,
        "        return price(item) * (100 - percent) / 100;",
        "        return PRICES.merge(item, 100 - percent, (old, part) -> old * part / 100);",
    );
    history.change(Way::Branch, &[edit]);
    history.run(&["--no-record", "--blame-budget", "0"]).ends(1);
    surefire(&history, "WrongTest", "reduced", "");
    let failure = "<failure message=\"expected:&lt;100&gt; but was:&lt;90&gt;\" type=\"java.lang.AssertionError\">\
                   java.lang.AssertionError: expected:&lt;100&gt; but was:&lt;90&gt;\n\
                   \tat shop.VictimTest.price(VictimTest.java:6)</failure>";
    surefire(&history, "VictimTest", "price", failure);
    let said = history.unflake("triage", &["--check-base", "target/surefire-reports"]);
    let test = "shop.VictimTest#price";
    said.ends(1).is(test, "yours", &["fails-more"]);
    let polluters = &said.finding(test)["whose"]["polluters"];
    assert_eq!(
        *polluters,
        serde_json::json!(["shop.WrongTest#reduced"]),
        "{said}"
    );
}
