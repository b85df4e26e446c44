//! Labels of series.

/// The labels of a series, whose values are few.
pub(super) type SeriesLabels<const N: usize, V = &'static str> = [(&'static str, V); N];
