//! Traces as CSV: logs as in Figures 3 and 4 of `RootFinder` 2019, from other instrumenters.

use std::collections::HashMap;

use unflake_core::why::trace::{Call, CallResult, Kind, Site, Thread, Trace};

/// Reads a log; what is wrong with it, if anything is.
pub(crate) fn read_csv(text: &str) -> Result<Trace, String> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let head = split(lines.next().ok_or("it has no first line")?)?;
    let column = |name: &str| head.iter().position(|one| one.trim() == name);
    let source = column("source").ok_or("it has no column `source`")?;
    let what = column("callee").ok_or("it has no column `callee`")?;
    let others = ["thread", "caller", "start", "end", "value", "exception"].map(column);
    let mut pen = Pen::default();
    for (at, line) in lines.enumerate() {
        let fields = split(line).map_err(|what| format!("line {}: {what}", at + 2))?;
        let field = |place: usize| fields.get(place).map_or("", |one| one.trim());
        let [thread, caller, start, end, value, exception] =
            others.map(|place| place.map_or("", field));
        let time = |text: &str, missing: u64| match text {
            "" => Ok(missing),
            text => text
                .parse::<u64>()
                .map_err(|_| format!("line {}: `{text}` is no time", at + 2)),
        };
        let start = time(start, at as u64)?;
        let end = time(end, start)?;
        let (file, number) = field(source)
            .rsplit_once(':')
            .unwrap_or(("", field(source)));
        let site = Site {
            file: file.to_owned(),
            line: number
                .parse()
                .map_err(|_| format!("line {}: `{number}` is no line of a source", at + 2))?,
            column: 0,
            caller: caller.to_owned(),
            callee: field(what).to_owned(),
            kind: Kind::Plain,
        };
        let result = if exception.is_empty() {
            let text = (!value.is_empty()).then(|| pen.value(value));
            CallResult::Returned(text)
        } else {
            CallResult::Raised(Some(pen.value(exception)))
        };
        let call = Call {
            site: pen.site(site),
            thread: pen.thread(thread),
            receiver: None,
            start,
            duration: end.saturating_sub(start),
            result,
        };
        pen.trace.calls.push(call);
    }
    pen.trace.calls.sort_by_key(|call| call.start);
    Ok(pen.trace)
}

/// The fields of a line; one in quotation marks may have commas in it.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let field = fields.last_mut().expect("there is a first field");
        match letter {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            letter => field.push(letter),
        }
    }
    if is_quoted {
        return Err("a quotation mark is missing".to_owned());
    }
    Ok(fields)
}

/// A trace that is being written, with numbers for what comes again.
#[derive(Default)]
struct Pen {
    trace: Trace,
    sites: HashMap<Site, u32>,
    threads: HashMap<String, u32>,
    values: HashMap<String, u32>,
}

impl Pen {
    fn site(&mut self, site: Site) -> u32 {
        let list = &mut self.trace.sites;
        *self
            .sites
            .entry(site.clone())
            .or_insert_with(|| push(list, site))
    }

    fn thread(&mut self, name: &str) -> u32 {
        let thread = Thread {
            name: name.to_owned(),
            parent: None,
            process: 0,
        };
        let list = &mut self.trace.threads;
        *self
            .threads
            .entry(name.to_owned())
            .or_insert_with(|| push(list, thread))
    }

    fn value(&mut self, text: &str) -> u32 {
        let list = &mut self.trace.values;
        let text = text.to_owned();
        *self
            .values
            .entry(text.clone())
            .or_insert_with(|| push(list, text))
    }
}

fn push<T>(list: &mut Vec<T>, one: T) -> u32 {
    list.push(one);
    u32::try_from(list.len() - 1).expect("a log has fewer lines than 2 to the 32nd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_as_in_the_paper_is_read() {
        let log = "source,callee,start,value,exception\n\
                   3,TestAlertTest.CreateTestAlert,1,null,\n\
                   t.cs:9,Random.Next,2,\"1,\"\"4\",\n\
                   t.cs:9,Random.Next,3,,Overflow\n";
        let trace = read_csv(log).unwrap();
        assert_eq!(trace.sites.len(), 2);
        assert_eq!((trace.sites[0].file.as_str(), trace.sites[0].line), ("", 3));
        assert_eq!(trace.values, ["null", "1,\"4", "Overflow"]);
        assert_eq!(trace.calls[2].site, 1);
        assert_eq!(trace.calls[2].result, CallResult::Raised(Some(2)));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let wrong = |log: &str| read_csv(log).unwrap_err();
        assert_eq!(wrong("a,b\n"), "it has no column `source`");
        assert_eq!(
            wrong("source,callee,start\n3,f,x\n"),
            "line 2: `x` is no time"
        );
        assert_eq!(
            wrong("source,callee\nf,f\n"),
            "line 2: `f` is no line of a source"
        );
    }
}
