//! The gate of a process that scales several clusters, in virtual time: the same decisions as in the
//! controller, and events in place of tasks that sleep.

use std::collections::BTreeMap;
use std::time::Duration;

use rayfit_core::flow_control::Flow;
use rayfit_core::flow_control::patience::PatienceUntil;
use rayfit_core::flow_control::requests::{
    AT_ONCE, LONGEST_WAIT, NotAdmitted, RequestFlows, SendDecision, Ticket,
};
use rayfit_core::simulate::moment::Moment;
use rayfit_core::simulate::world::queue::WorldEvent;

/// A request: the number of its cluster, and the event by which it arrives.
pub(crate) type GateRequest = (usize, WorldEvent);

/// The requests of several clusters on their way to one API server.
#[derive(Debug)]
pub(crate) struct SimulatedGate {
    flows: RequestFlows<GateRequest>,
    patience: PatienceUntil,
    /// The request at the front, and from when on it is worth asking for it again.
    front: Option<(GateRequest, Moment)>,
    /// All that wait, and until when.
    waiting: BTreeMap<GateRequest, (Ticket, Moment)>,
    /// Those of clusters that were asked for patience: from when on they wait for their turn, and until
    /// when.
    patient: BTreeMap<GateRequest, (Moment, Moment)>,
    under_way: Vec<GateRequest>,
    /// The longest time that a request has waited, by cluster, in seconds.
    pub(crate) longest_s: BTreeMap<usize, f64>,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// It is sent.
    Sent(GateRequest),
    /// It is not.
    Refused(GateRequest, NotAdmitted),
}

impl SimulatedGate {
    /// A gate for at most `rate` requests a second, with `burst` of them at once after a quiet time.
    pub(crate) fn new(rate: u32, burst: u32) -> Self {
        Self {
            flows: RequestFlows::new(rate, burst),
            patience: PatienceUntil::default(),
            front: None,
            waiting: BTreeMap::new(),
            patient: BTreeMap::new(),
            under_way: Vec::new(),
            longest_s: BTreeMap::new(),
        }
    }

    /// A request wants to pass. Returns what becomes of it if that is known at once.
    pub(crate) fn join(&mut self, request: GateRequest, now: Moment) -> Option<Passed> {
        let until = now.plus(LONGEST_WAIT.as_secs_f64());
        self.line_up(request, now, until)
    }

    fn line_up(&mut self, request: GateRequest, now: Moment, until: Moment) -> Option<Passed> {
        let flow = flow(request);
        // As in the controller, a cluster that has to wait does not do so at the front.
        if let Some(later) = self.patience.until_of(&flow, duration(now)) {
            let later = first_after(later).min(until);
            self.patient.insert(request, (later, until));
            return None;
        }
        let Some(ticket) = self.flows.join(&flow, request) else {
            return Some(Passed::Refused(request, NotAdmitted::TooMany));
        };
        self.waiting.insert(request, (ticket, until));
        None
    }

    /// When the gate has something to do, if nothing happens before.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        let deadlines = self.waiting.values().map(|(_, until)| *until);
        let front = self.front.map(|(_, later)| later);
        let is_full = self.flows.under_way() >= AT_ONCE;
        let patient = self.patient.values().map(|(later, _)| *later);
        let front = front.filter(|_| !is_full);
        deadlines.chain(patient).chain(front).min()
    }

    /// Lets through what may pass now, and turns away what has waited for too long.
    pub(crate) fn proceed(&mut self, now: Moment) -> Vec<Passed> {
        let mut passed = Vec::new();
        let over = self.patient.iter().filter(|(_, (later, _))| *later <= now);
        let over: Vec<(GateRequest, Moment)> = over
            .map(|(request, (_, until))| (*request, *until))
            .collect();
        for (request, until) in over {
            self.patient.remove(&request);
            if until <= now {
                passed.push(Passed::Refused(request, NotAdmitted::TooLong));
            } else {
                passed.extend(self.line_up(request, now, until));
            }
        }
        let late = self.waiting.iter().filter(|(_, (_, until))| *until <= now);
        let late: Vec<GateRequest> = late.map(|(request, _)| *request).collect();
        for request in late {
            if let Some((ticket, _)) = self.waiting.remove(&request) {
                self.flows.leave(&ticket);
            }
            if self.front.is_some_and(|(front, _)| front == request) {
                self.front = None;
                self.flows.step_aside();
            }
            passed.push(Passed::Refused(request, NotAdmitted::TooLong));
        }
        loop {
            if self.front.is_none() {
                self.front = self.flows.call().map(|request| (request, now));
            }
            let Some((request, _)) = self.front else {
                return passed;
            };
            match self
                .flows
                .admit(&flow(request), duration(now), &self.patience)
            {
                SendDecision::Sent => {
                    self.front = None;
                    self.flows.step_aside();
                    if let Some((_, until)) = self.waiting.remove(&request) {
                        let waited = LONGEST_WAIT.as_secs_f64() - until.since(now);
                        let longest = self.longest_s.entry(request.0).or_default();
                        *longest = longest.max(waited);
                    }
                    self.under_way.push(request);
                    passed.push(Passed::Sent(request));
                }
                SendDecision::NotBefore(later) => {
                    self.front = Some((request, first_after(later)));
                    return passed;
                }
                SendDecision::WhenOneEnds => return passed,
            }
        }
    }

    /// A request may have ended: it is under way only until it is answered.
    pub(crate) fn answered(&mut self, request: GateRequest) {
        if let Some(at) = self.under_way.iter().position(|other| *other == request) {
            self.under_way.swap_remove(at);
            self.flows.end(&flow(request));
        }
    }

    /// The API server has asked a cluster for patience.
    pub(crate) fn ask_patience(&mut self, cluster: usize, now: Moment, seconds: f64) {
        let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let flow = flow_of(cluster);
        self.patience.ask(duration(now), Some(&flow), Some(time));
    }

    /// How many requests are under way: of all clusters, and the most of one.
    pub(crate) fn under_way(&self) -> (usize, usize) {
        let mut of = BTreeMap::<usize, usize>::new();
        for (cluster, _) in &self.under_way {
            *of.entry(*cluster).or_default() += 1;
        }
        let most = of.values().copied().max().unwrap_or_default();
        (self.under_way.len(), most)
    }
}

fn flow((cluster, _): GateRequest) -> Flow {
    flow_of(cluster)
}

/// Each cluster has a namespace of its own.
fn flow_of(cluster: usize) -> Flow {
    format!("{cluster}/demo").into()
}

/// The time since the beginning.
fn duration(moment: Moment) -> Duration {
    Duration::from_secs_f64(moment.seconds())
}

/// The first moment at which so much time has passed since the beginning.
fn first_after(time: Duration) -> Moment {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of some years")]
    let milliseconds = time.as_nanos().div_ceil(1_000_000) as f64;
    Moment::at(milliseconds / 1000.0)
}
