// Package real runs the ordeal with real processes: the built ductor and its runner in their default configuration,
// scripted agents as processes, and the simulated Telegram on loopback, in separate namespaces. It kills, suspends
// and upgrades them, breaks connections, fills disks and loads the machine while users write. Then it checks from
// outside that every promise was kept and nothing is left.
//
// A seed determines the events and their order, but not the timing: a failed script can be run again, but not
// replayed exactly. Package simulated replays exactly.
package real
