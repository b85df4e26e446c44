// Package playgcs plays the GCS of many Ray clusters at once, where Ray itself
// would need more machines than there are: its nodes are the pods that the API
// server shows, its tasks are numbers.
//
// It speaks the part of Ray's protocol that an autoscaler needs, encoded by
// hand from Ray 2.60.0's field numbers, so that it shares no code and no
// misunderstanding with the client that is tried against it.
//
// Reading order: what a cluster is and does in cluster.go; its messages in
// wire.go; the server in server.go; pods that become nodes in follow.go.
package playgcs
