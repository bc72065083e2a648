package series

// Ref is where a series lives: group id in 23 bits, column in the lower 8;
// or, with the top bit set, its number among the names of its bucket that have no
// column.
type Ref uint32

// MaxGroups is the number of groups a node can have: 23 bits, some two billion
// series at a time.
const MaxGroups = 1<<23 - 1

// None is the column of a series that had none when it was deleted.
const None = Ref(MaxGroups << 8)

const inactiveBit = Ref(1 << 31)

// NoColumn is no reference: LookupAll returns it for a series without a column.
const NoColumn = ^Ref(0)

// RefAt returns the reference to a column of a group.
func RefAt(group uint32, col int) Ref { return Ref(group<<8 | uint32(col)) }

// Inactive reports whether the series has no column.
func (r Ref) Inactive() bool { return r&inactiveBit != 0 }

// Group returns the id of the group of an active series.
func (r Ref) Group() uint32 { return uint32(r) >> 8 }

// Column returns the column of an active series.
func (r Ref) Column() int { return int(r & 0xff) }

func inactiveRef(number uint32) Ref { return inactiveBit | Ref(number) }
func (r Ref) number() uint32        { return uint32(r &^ inactiveBit) }
