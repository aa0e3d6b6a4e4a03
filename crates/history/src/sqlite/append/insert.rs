//! Writing rows into the table of runs, many by one statement.

use rusqlite::{CachedStatement, Connection};

/// So many runs are written by one statement: each statement has a price of its own.
const TOGETHER: usize = 64;

/// What a run has in the table, beside its number.
pub(super) type Values = [Option<i64>; 6];

/// Writes runs. They get the next numbers.
pub(super) struct Insert<'a> {
    /// For [`TOGETHER`] runs, and for a single one.
    many: Bound<'a>,
    one: Bound<'a>,
    waiting: Vec<Values>,
}

impl<'a> Insert<'a> {
    pub(super) fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            many: Bound::prepare(connection, TOGETHER)?,
            one: Bound::prepare(connection, 1)?,
            waiting: Vec::with_capacity(TOGETHER),
        })
    }

    /// Adds a run, which is written later at the latest when [`Self::flush`] is called.
    pub(super) fn add(&mut self, values: Values) -> rusqlite::Result<()> {
        self.waiting.push(values);
        if self.waiting.len() == TOGETHER {
            self.many.execute(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Writes the runs that wait for others.
    pub(super) fn flush(&mut self) -> rusqlite::Result<()> {
        for run in self.waiting.drain(..) {
            self.one.execute(&[run])?;
        }
        Ok(())
    }
}

/// A statement, and what its parameters are bound to: most of them stay what they were, as most runs pass at
/// their first attempt, and to bind one costs more than to look.
struct Bound<'a> {
    statement: CachedStatement<'a>,
    values: Vec<Values>,
}

impl<'a> Bound<'a> {
    fn prepare(connection: &'a Connection, runs: usize) -> rusqlite::Result<Self> {
        // After an error the whole transaction is given up, so that no statement need be able to undo itself.
        let columns = "test, time, outcome, provenance, attempt, duration";
        let rows = vec!["(?,?,?,?,?,?)"; runs].join(",");
        let text = format!("INSERT OR FAIL INTO run({columns}) VALUES {rows}");
        Ok(Self {
            statement: connection.prepare_cached(&text)?,
            // What is not bound yet is null.
            values: vec![[None; 6]; runs],
        })
    }

    fn execute(&mut self, runs: &[Values]) -> rusqlite::Result<()> {
        let bound = self.values.as_flattened_mut().iter_mut();
        for ((place, bound), value) in (1..).zip(bound).zip(runs.as_flattened()) {
            if bound != value {
                self.statement.raw_bind_parameter(place, value)?;
                *bound = *value;
            }
        }
        self.statement.raw_execute()?;
        Ok(())
    }
}
