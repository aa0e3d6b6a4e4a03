//! How a failing test fares at the base, and what becomes of the base where there is none.
