//! RF3xx: changes, judged on updates only.
