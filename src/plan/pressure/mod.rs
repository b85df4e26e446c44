//! Memory that is really in use: pods grow before it is full, and give back later what they then
//! no longer use.
//!
//! Takes the memory in use of each pod, as Ray reports it, and gives back resizes of memory alone. What
//! work asks for and what it uses are different things: a task that asks for no memory at all is killed
//! all the same when its pod is full. Room for work that runs comes before room for demand that waits.
//! A pod never grows beyond its resize limits, nor what its Kubernetes node has left, and
//! never comes down below what is in use with some to spare. What a tenant reports about its pods
//! therefore concerns nobody else.
//!
//! Invariant: a pod never gets less memory than is in use in it, nor more than its resize limits.

pub(crate) mod give_back;
pub(crate) mod relief;
