//! INTERSECT in a Maven project: what a failing test has to do with each kind of change.

use serde_json::Value;
use tempfile::TempDir;

use crate::junit::{build, has_maven, unflake};
use crate::project::Project;

/// Resources as many projects have them: a folder, and the licence out of the root.
const POM: &str = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">
  <modelVersion>4.0.0</modelVersion>
  <groupId>shop</groupId>
  <artifactId>changes</artifactId>
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
    <resources>
      <resource>
        <directory>src/main/resources</directory>
      </resource>
      <resource>
        <directory>${basedir}</directory>
        <targetPath>META-INF</targetPath>
        <includes>
          <include>LICENSE.txt</include>
        </includes>
      </resource>
    </resources>
    <plugins>
      <plugin>
        <artifactId>maven-surefire-plugin</artifactId>
        <version>2.22.2</version>
      </plugin>
    </plugins>
  </build>
</project>
";

const PRICE: &str = "package shop;

class Price {
    static final int TAX = 19;

    static int of(int net) {
        return net + net * TAX / 100;
    }
}
";

/// Nobody loads it: the compiler copies what is in it.
const NAMES: &str = "package shop;

final class Names {
    static final String SHOP = \"tea\";

    private Names() {
    }
}
";

const UNUSED: &str = "package shop;

class Unused {
    static final int SIZE = 3;

    int size() {
        return SIZE;
    }
}
";

const TEST: &str = "package shop;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import java.io.InputStream;
import java.nio.file.Paths;
import java.util.Properties;

import org.junit.Test;

public class ShopTest {
    @Test
    public void failsHere() throws Exception {
        // The name of every checkout of the base.
        assertTrue(Paths.get(\"\").toRealPath().toString().contains(\"unflake-base-\"));
    }

    @Test
    public void failsEverywhere() {
        throw new IllegalStateException(\"no service\");
    }

    @Test
    public void price() {
        assertEquals(119, Price.of(100));
    }

    @Test
    public void name() {
        assertEquals(\"tea\", Names.SHOP);
    }

    @Test
    public void setting() throws Exception {
        Properties settings = new Properties();
        try (InputStream in = ShopTest.class.getResourceAsStream(\"/shop.properties\")) {
            settings.load(in);
        }
        assertEquals(\"eur\", settings.getProperty(\"currency\"));
    }
}
";

const SETTINGS: &str = "src/main/resources/shop.properties";

/// What Surefire says of the failures: the class of an exception stands apart from its message.
const REPORT: &str = r#"<testsuite name="shop.ShopTest" tests="3" failures="3">
  <testcase name="failsHere" classname="shop.ShopTest" time="0.1">
    <failure type="java.lang.AssertionError">java.lang.AssertionError
	at shop.ShopTest.failsHere(ShopTest.java:16)</failure>
  </testcase>
  <testcase name="failsEverywhere" classname="shop.ShopTest" time="0.1">
    <error message="no service" type="java.lang.IllegalStateException">java.lang.IllegalStateException: no service
	at shop.ShopTest.failsEverywhere(ShopTest.java:21)</error>
  </testcase>
  <testcase name="price" classname="shop.ShopTest" time="0.1">
    <failure message="expected:&lt;119&gt; but was:&lt;81&gt;" type="java.lang.AssertionError">java.lang.AssertionError: expected:&lt;119&gt; but was:&lt;81&gt;
	at shop.ShopTest.price(ShopTest.java:26)</failure>
  </testcase>
</testsuite>
"#;

fn main_source(name: &str) -> String {
    format!("src/main/java/shop/{name}.java")
}

/// The project, committed as the base.
fn shop() -> Project {
    let project = Project::with(&[
        ("pom.xml", POM),
        (".gitignore", "target/\n"),
        ("LICENSE.txt", "all yours\n"),
        ("README.md", "tea\n"),
        (SETTINGS, "currency=eur\n"),
        (&main_source("Price"), PRICE),
        (&main_source("Names"), NAMES),
        (&main_source("Unused"), UNUSED),
        ("src/test/java/shop/ShopTest.java", TEST),
    ]);
    project.commit();
    project
}

/// The verdict of each test that failed, whose it is and why, and the files of the changes that it touches.
fn judge(project: &Project, outside: &TempDir) -> Vec<(String, String, Vec<String>)> {
    let built = build(project, outside.path(), &[]);
    assert_eq!(built.code, Some(0), "{built:#?}");
    ask(project, outside, &["run", "--immediate", "0", "--end", "0"])
}

/// The same by any verb that looks into failures.
fn ask(project: &Project, outside: &TempDir, verb: &[&str]) -> Vec<(String, String, Vec<String>)> {
    let args = [
        "--format",
        "json",
        "--check-base",
        "--fresh",
        "1",
        "--threshold",
        "100%",
    ];
    let run = unflake(project, outside.path(), &[verb, &args].concat());
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:#?}"));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    let mut judged: Vec<(String, String, Vec<String>)> = findings
        .map(|one| {
            let whose = &one["whose"];
            let words = [
                &one["verdict"],
                &one["kind"],
                &whose["answer"],
                &whose["because"],
            ];
            let words: Vec<&str> = words.into_iter().filter_map(Value::as_str).collect();
            let verdict = words.join(" ");
            let touches = whose["touches"].as_array();
            let touches = touches.unwrap_or_else(|| panic!("{one:#}"));
            let name = text(&one["id"]).replace("shop.ShopTest#", "");
            let files = touches.iter().map(|touch| text(&touch["file"]));
            (name, verdict, files.collect())
        })
        .collect();
    judged.sort();
    judged
}

fn expect(planted: &[(&str, &str, &[&str])]) -> Vec<(String, String, Vec<String>)> {
    let row = |(name, verdict, files): &(&str, &str, &[&str])| {
        let files = files.iter().map(ToString::to_string).collect();
        ((*name).to_owned(), (*verdict).to_owned(), files)
    };
    planted.iter().map(row).collect()
}

#[test]
fn a_test_is_flaky_only_if_it_loads_nothing_that_changed_and_passes_at_the_base() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    let [price, unused] = ["Price", "Unused"].map(main_source);
    project.write(&price, &PRICE.replace("net + net", "net - net"));
    project.write(&unused, &UNUSED.replace("return SIZE", "return 2 * SIZE"));
    project.write("README.md", "coffee\n");
    let planted: [(&str, &str, &[&str]); 3] = [
        ("failsEverywhere", "broken not-yours at-base", &[]),
        ("failsHere", "flaky untouched not-yours untouched", &[]),
        ("price", "broken yours fails-more", &[&price]),
    ];
    assert_eq!(judge(&project, &outside), expect(&planted));
    project.write("TEST-shop.xml", REPORT);
    let triaged = ask(&project, &outside, &["triage", "TEST-shop.xml"]);
    assert_eq!(triaged, expect(&planted));
}

#[test]
fn constants_that_were_copied_and_resources_count_as_changes() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    project.write(&main_source("Names"), &NAMES.replace("tea", "coffee"));
    // Maven builds only what is newer than its classes, and here that is all.
    project.write(SETTINGS, "currency=usd\n");
    let touched: &[&str] = &[SETTINGS];
    let planted = [
        ("failsEverywhere", "broken not-yours at-base", touched),
        ("failsHere", "broken yours fails-more", touched),
        ("name", "broken yours fails-more", touched),
        ("setting", "broken yours fails-more", touched),
    ];
    assert_eq!(judge(&project, &outside), expect(&planted));
    project.write(SETTINGS, "currency=eur\n");
    let planted: [(&str, &str, &[&str]); 3] = [
        ("failsEverywhere", "broken not-yours at-base", &[]),
        ("failsHere", "broken not-known unseen", &[]),
        ("name", "broken not-known unseen", &[]),
    ];
    assert_eq!(judge(&project, &outside), expect(&planted));
}

#[test]
fn every_test_may_depend_on_the_build_file_and_on_a_licence_that_is_copied() {
    if !has_maven() {
        return;
    }
    let outside = TempDir::new().unwrap();
    let project = shop();
    project.write("LICENSE.txt", "none of yours\n");
    project.write("pom.xml", &POM.replace("<version>1<", "<version>2<"));
    let touched: &[&str] = &["LICENSE.txt", "pom.xml"];
    let planted = [
        ("failsEverywhere", "broken not-yours at-base", touched),
        ("failsHere", "broken yours fails-more", touched),
    ];
    assert_eq!(judge(&project, &outside), expect(&planted));
}
