// Package real runs scenarios of the ordeal with real processes: ductor and its runner in their default configuration,
// and the scripted agents. The simulated Telegram is on the loopback interface. All of this runs in separate Linux
// namespaces. While users write, the package kills, suspends and upgrades processes, breaks connections, fills disks,
// and keeps the CPUs busy. Then package judge checks that ductor has kept its promises and has left nothing behind.
//
// A seed determines the steps and their order, but not the timing. A scenario that failed may succeed the next time.
// Package simulated can repeat a run exactly.
package real
