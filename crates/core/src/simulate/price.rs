//! Prices of the hours that worker pods hold, and what a simulation costs by them.

use std::str::FromStr;

use crate::simulate::result::SimulationResult;

/// The highest price of an hour.
const MOST: f64 = 1e6;

/// The prices of an hour of a CPU, of a GiB of memory and of a GPU, in whatever currency.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Price {
    cpu: f64,
    gib: f64,
    gpu: f64,
}

impl FromStr for Price {
    type Err = String;

    /// Reads `cpu-hour=0.04,gib-hour=0.005,gpu-hour=2`; what is not named costs nothing.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut price = Self::default();
        let mut named = Vec::new();
        for part in text.split(',') {
            let (name, amount) = part.split_once('=').unwrap_or((part, ""));
            let field = match name {
                "cpu-hour" => &mut price.cpu,
                "gib-hour" => &mut price.gib,
                "gpu-hour" => &mut price.gpu,
                _ => {
                    let wanted = "write cpu-hour, gib-hour or gpu-hour with its price";
                    return Err(format!("{wanted}, like cpu-hour=0.04,gib-hour=0.005"));
                }
            };
            if named.contains(&name) {
                return Err(format!("{name} has two prices; write one"));
            }
            named.push(name);
            let amount: Option<f64> = amount.parse().ok();
            *field = amount
                .filter(|amount| (0.0..=MOST).contains(amount))
                .ok_or_else(|| format!("write a price from 0 to {MOST}, like {name}=0.04"))?;
        }
        Ok(price)
    }
}

impl Price {
    /// The price of the hours that worker pods held.
    pub fn of(self, result: &SimulationResult) -> f64 {
        self.of_hours(
            result.cpu_hours.paid,
            result.gib_hours.paid,
            result.gpu_hours.paid,
        )
    }

    /// The price of so many hours of a CPU, of a GiB and of a GPU.
    pub fn of_hours(self, cpu: f64, gib: f64, device: f64) -> f64 {
        self.cpu * cpu + self.gib * gib + self.gpu * device
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::result::Cost;

    fn paid(paid: f64) -> Cost {
        Cost {
            paid,
            ..Cost::default()
        }
    }

    #[test]
    fn each_kind_of_hours_has_its_price() {
        let result = SimulationResult {
            cpu_hours: paid(10.0),
            gib_hours: paid(100.0),
            gpu_hours: paid(3.0),
            ..SimulationResult::default()
        };
        for (text, money) in [
            ("cpu-hour=0.5,gib-hour=0.25,gpu-hour=2", 36.0),
            ("gpu-hour=2", 6.0),
        ] {
            let price: Price = text.parse().unwrap();
            assert!((price.of(&result) - money).abs() < 1e-9, "{text}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused_with_the_remedy() {
        for (text, remedy) in [
            ("", "write cpu-hour, gib-hour or gpu-hour"),
            ("node-hour=1", "write cpu-hour, gib-hour or gpu-hour"),
            ("cpu-hour", "cpu-hour=0.04"),
            ("cpu-hour=-1", "from 0 to 1000000"),
            ("cpu-hour=NaN", "from 0 to 1000000"),
            ("cpu-hour=1,cpu-hour=2", "two prices"),
        ] {
            let error = text.parse::<Price>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }
}
