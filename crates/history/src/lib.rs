//! Run history: for now the import of reports that other tools wrote.

pub mod junit;
