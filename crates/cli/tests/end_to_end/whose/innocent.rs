//! Old failures beside changes that have nothing to do with them.

use super::history::{Edit, History, Way};

/// An old coin in a product with a used module and one that nobody imports.
const COIN: &str = r#"
=== shop.py
import coin


def greeting():
    return "welcome"


def farewell():
    return "goodbye"


def buy():
    greeting()
    return coin.toss()
=== unused.py
def size():
    return 3
=== test_shop.py
import shop


def test_greeting():
    assert shop.greeting()


def test_buy():
    assert shop.buy()
=== docs/notes.md
Tea and mugs.
"#;

const BUY: &str = "test_shop.py::test_buy";

/// A change with which an old coin goes on as before: at home and in a CI it is forgiven.
fn forgiven(test: &str, base: &str, edits: &[Edit], because: &[&str]) {
    for way in [Way::Uncommitted, Way::Branch] {
        let Some(history) = History::at(base) else {
            return;
        };
        assert_eq!(history.fail_at_base(), [test], "the coin is old");
        history.change(way, edits);
        assert_eq!(history.fail_plainly(&history.tree(), &[]), [test]);
        if matches!(way, Way::Branch) {
            history.set("CI", "true");
        }
        let said = history.run(&[]);
        said.ends(0).is(test, "not-yours", because);
        said.fails_as(test, "flaky");
    }
}

#[test]
fn a_coin_and_a_change_of_documents() {
    let edit = ("docs/notes.md", "Tea", "Coffee");
    forgiven(BUY, COIN, &[edit], &["untouched"]);
}

#[test]
fn a_coin_and_a_change_of_a_module_that_nobody_imports() {
    let edit = ("unused.py", "return 3", "return 4");
    forgiven(BUY, COIN, &[edit], &["untouched"]);
}

#[test]
fn a_coin_and_a_change_of_a_function_that_does_not_run() {
    let edit = ("shop.py", "\"goodbye\"", "\"see you\"");
    forgiven(BUY, COIN, &[edit], &["untouched", "at-base"]);
}

#[test]
fn a_coin_and_a_harmless_change_of_a_function_that_runs() {
    let edit = ("shop.py", "\"welcome\"", "\"hello\"");
    forgiven(BUY, COIN, &[edit], &["at-base"]);
}

#[test]
fn a_coin_and_lines_above_it_that_move_it() {
    let edit = (
        "shop.py",
        "import coin",
        "import coin\n\nNAME = \"shop\"\nSIZE = 1",
    );
    forgiven(BUY, COIN, &[edit], &["at-base"]);
}

#[test]
fn a_coin_and_a_new_test_beside_it() {
    let new = "\n\ndef test_farewell():\n    assert shop.farewell()\n";
    forgiven(
        BUY,
        COIN,
        &[("test_shop.py", "", new)],
        &["at-base", "untouched"],
    );
}

#[test]
fn a_coin_of_three_sides_and_a_harmless_change() {
    let base = COIN.replace("coin.toss()", "coin.toss(sides=3)");
    let edit = ("shop.py", "\"welcome\"", "\"hello\"");
    forgiven(BUY, &base, &[edit], &["at-base"]);
}

#[test]
fn two_old_coins_and_a_harmless_change() {
    let base = COIN.replace(
        "def test_buy():\n",
        "def test_again():\n    import coin\n\n    shop.greeting()\n    \
         assert coin.toss(\"other\")\n\n\ndef test_buy():\n",
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    history.change(Way::Branch, &[("shop.py", "\"welcome\"", "\"hello\"")]);
    let said = history.run(&[]);
    said.ends(0);
    assert_eq!(said.tests(), ["test_shop.py::test_again", BUY], "{said}");
    for test in ["test_shop.py::test_again", BUY] {
        said.is(test, "not-yours", &["at-base"]);
    }
}

#[test]
fn an_old_coin_does_not_excuse_a_leak_beside_it() {
    let base = format!(
        "{COIN}=== test_z.py\nimport shop\n\n\ndef test_name():\n    assert shop.farewell() == \"goodbye\"\n"
    );
    let Some(history) = History::at(&base) else {
        return;
    };
    let edit = (
        "shop.py",
        "def greeting():\n",
        "def greeting():\n    global farewell\n    farewell = str\n",
    );
    history.change(Way::Branch, &[edit]);
    let victim = "test_z.py::test_name";
    assert_eq!(history.fail_plainly(&history.tree(), &[]), [BUY, victim]);
    let said = history.run(&[]);
    said.ends(1).is(victim, "yours", &["fails-more"]);
    said.is(BUY, "not-yours", &["at-base"]);
}

/// A victim and its polluter, both old.
const PAIR: &str = r#"
=== state.py
LEVEL = 1


def name():
    return "level"
=== test_state.py
import state


def test_high():
    state.LEVEL = 9
    assert state.name()


def test_level():
    assert state.LEVEL == 1
=== docs/notes.md
Tea.
"#;

#[test]
fn an_old_pair_that_depends_on_order_and_an_unrelated_change() {
    let test = "test_state.py::test_level";
    let notes = ("docs/notes.md", "Tea", "Coffee");
    forgiven(test, PAIR, &[notes], &["untouched", "at-base"]);
    let harmless = ("state.py", "\"level\"", "\"height\"");
    forgiven(test, PAIR, &[harmless], &["at-base"]);
}

#[test]
fn an_old_bug_is_not_yours_and_fails_the_run_unless_that_is_forgiven() {
    let base = "\n=== shop.py\ndef price():\n    return name() and 2\n\n\ndef name():\n    return \"tea\"\n\
                === test_shop.py\nimport shop\n\n\ndef test_price():\n    assert shop.price() == 1\n";
    for way in [Way::Uncommitted, Way::Branch] {
        let Some(history) = History::at(base) else {
            return;
        };
        let test = "test_shop.py::test_price";
        assert_eq!(history.fail_at_base(), [test]);
        history.change(way, &[("shop.py", "\"tea\"", "\"mug\"")]);
        if matches!(way, Way::Branch) {
            history.set("CI", "true");
        }
        let said = history.run(&[]);
        said.ends(1).is(test, "not-yours", &["at-base"]);
        said.fails_as(test, "broken");
        history.run(&["--forgive", "pre-existing"]).ends(0);
        history.write("unflake.toml", "[run]\nforgive = \"pre-existing\"\n");
        history.run(&[]).ends(0);
    }
}

#[test]
fn a_new_test_that_fails_is_yours() {
    let new = "def test_new():\n    assert False\n";
    super::bug(
        "test_new.py::test_new",
        COIN.replace("return coin.toss()", "return True").as_str(),
        &[("test_new.py", "", new)],
        &["new-test"],
    );
}

#[test]
fn a_moved_file_with_an_old_coin_is_compared_with_its_old_id() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    history.begin(Way::Branch);
    std::fs::create_dir(history.tree().join("tests")).unwrap();
    history.git(&["mv", "test_shop.py", "tests/test_shop.py"]);
    history.end(Way::Branch);
    history
        .run(&[])
        .ends(0)
        .is("tests/test_shop.py::test_buy", "not-yours", &["at-base"]);
}

#[test]
fn a_renamed_test_with_an_old_coin_is_compared_with_its_old_id() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    history.change(
        Way::Branch,
        &[("test_shop.py", "def test_buy", "def test_purchase")],
    );
    history
        .run(&[])
        .ends(0)
        .is("test_shop.py::test_purchase", "not-yours", &["at-base"]);
}

#[test]
fn a_test_with_an_old_coin_that_moved_into_a_class_is_compared_with_its_old_id() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    let edit = (
        "test_shop.py",
        "def test_buy():\n    assert shop.buy()",
        "class TestShop:\n    def test_buy(self):\n        assert shop.buy()",
    );
    history.change(Way::Branch, &[edit]);
    history.run(&[]).ends(0).is(
        "test_shop.py::TestShop::test_buy",
        "not-yours",
        &["at-base"],
    );
}

#[test]
fn a_parameter_with_an_old_coin_that_got_a_name_is_compared_with_its_old_id() {
    let old = "import pytest\nimport shop\n\n\n@pytest.mark.parametrize(\"many\", [1, 2])\ndef test_many(many):\n    assert many == 1 or shop.buy()";
    let base = format!("{COIN}=== test_many.py\n{old}\n");
    let Some(history) = History::at(&base.replace(
        "    assert shop.buy()\n===",
        "    assert shop.farewell()\n===",
    )) else {
        return;
    };
    let edit = ("test_many.py", "[1, 2]", "[1, 2], ids=[\"one\", \"two\"]");
    history.change(Way::Branch, &[edit]);
    let said = history.run(&[]);
    said.ends(0)
        .is("test_many.py::test_many[two]", "not-yours", &["at-base"]);
}

#[test]
fn a_new_test_beside_an_old_namesake_is_yours() {
    let Some(history) = History::at(COIN) else {
        return;
    };
    let edit = (
        "test_shop.py",
        "",
        "\n\nclass TestShop:\n    def test_buy(self):\n        import coin\n\n        assert coin.toss(\"new\")\n",
    );
    history.change(Way::Branch, &[edit]);
    let test = "test_shop.py::TestShop::test_buy";
    history.run(&[]).ends(1).is(test, "yours", &["new-test"]);
}

/// A product that works in one call of thirteen, as its base does.
const HARDLY_EVER: &str = r#"
=== shop.py
import os


def greeting():
    return "welcome"


def buy():
    with open(os.environ["OUTSIDE"] + "/calls", "ab") as file:
        file.write(b".")
        file.flush()
        return file.tell() % 13 == 0
=== test_shop.py
import shop


def test_greeting():
    assert shop.greeting()


def test_buy():
    assert shop.greeting() and shop.buy()
"#;

#[test]
fn an_old_failure_that_hardly_ever_passes_is_flaky_all_the_same() {
    let Some(history) = History::at(HARDLY_EVER) else {
        return;
    };
    let edit = ("shop.py", "\"welcome\"", "\"hello\"");
    history.change(Way::Branch, &[edit]);
    let said = history.run(&[]);
    said.ends(0).is(BUY, "not-yours", &["at-base"]);
    said.fails_as(BUY, "flaky");
    assert_eq!(said.finding(BUY)["kind"], "chance", "{said}");
}

#[test]
fn an_old_failure_that_never_passes_is_broken() {
    let base = HARDLY_EVER.replace("% 13 == 0", "< 0");
    let Some(history) = History::at(&base) else {
        return;
    };
    let edit = ("shop.py", "\"welcome\"", "\"hello\"");
    history.change(Way::Branch, &[edit]);
    let said = history.run(&[]);
    said.ends(1).is(BUY, "not-yours", &["at-base"]);
    said.fails_as(BUY, "broken");
}
