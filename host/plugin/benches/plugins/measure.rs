//! Two ways of doing the same, in turn, so that both meet the same machine.

use std::time::Duration;

/// How much is done: `--quick` shows that everything runs, and little more.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) quick: bool,
}

impl Effort {
    pub(crate) fn of(self, full: usize) -> usize {
        if self.quick { full.div_ceil(20) } else { full }
    }
}

/// A distribution, in whatever was measured.
#[derive(Clone)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    pub(crate) fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        Self(values)
    }

    pub(crate) fn percent(&self, percent: usize) -> f64 {
        self.0[(self.0.len() - 1) * percent / 100]
    }

    pub(crate) fn median(&self) -> f64 {
        self.percent(50)
    }
}

/// Ours, the floor, and the ratio round by round.
pub(crate) struct Pair {
    pub(crate) ours: Spread,
    pub(crate) floor: Spread,
    pub(crate) ratio: Spread,
}

impl Pair {
    /// Rounds of both in turn, after one that is not counted.
    pub(crate) fn measure(
        rounds: usize,
        mut ours: impl FnMut() -> f64,
        mut floor: impl FnMut() -> f64,
    ) -> Self {
        let (mut mine, mut floors, mut ratios) = (vec![], vec![], vec![]);
        for round in 0..=rounds {
            let (one, other) = (ours(), floor());
            if round > 0 {
                mine.push(one);
                floors.push(other);
                ratios.push(one / other);
            }
        }
        Self {
            ours: Spread::of(mine),
            floor: Spread::of(floors),
            ratio: Spread::of(ratios),
        }
    }
}

/// Nanoseconds.
pub(crate) fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

/// A row of the table.
pub(crate) fn row(name: &str, goal: &str, ours: &str, floor: &str, ratio: Option<f64>) {
    let ratio = ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    println!("| {name} | {goal} | {ours} | {floor} | {ratio} |");
}

/// The row of a pair that was measured in nanoseconds.
pub(crate) fn pair(name: &str, goal: &str, pair: &Pair) {
    row(
        name,
        goal,
        &time(pair.ours.median()),
        &time(pair.floor.median()),
        Some(pair.ratio.median()),
    );
}

/// Nanoseconds in the unit that a reader wants.
pub(crate) fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e5 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}
