// Package real is the world of the ordeal with real processes. It runs the built ductor and its runner in their default
// configuration, the scripted agents as processes, and the simulated Telegram on the loopback interface, all in
// separate namespaces. While users write, it kills, suspends and upgrades the processes, breaks connections, fills
// disks, and keeps the CPUs busy. Then it checks from outside that ductor has kept its promises and has left nothing
// behind.
//
// A seed determines the steps and their order, but not the timing. A scenario that has failed can be run again, but it
// may not fail again. Package simulated can repeat a run exactly.
package real
