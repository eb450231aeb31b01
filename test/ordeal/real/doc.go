// Package real is the ordeal with real processes: the built ductor and its runner with their default configuration, scripted
// agents as processes, and the simulated Telegram on loopback, in namespaces of their own. It kills, suspends and upgrades them,
// breaks connections, fills disks and loads the machine while users write, and then looks from outside whether every promise
// was held and nothing is left.
//
// A seed decides what happens and in which order, but not the timing: a script that failed is run again, not replayed exactly.
// For exact replay there is package simulated.
package real
