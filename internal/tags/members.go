package tags

// Members returns what tells whether a series of a bucket is in a collection, by its key.
func Members(x *Index, collection []byte, bucket uint64) func(key []byte) bool {
	var codec rowCodec
	var r row
	return func(key []byte) bool {
		x.mu.RLock()
		defer x.mu.RUnlock()
		encoded, ok := rowOf(x, collection, bucket, key)
		if !ok {
			return false
		}
		codec.decode(&r, encoded, x.nodes.ids)
		return r.isVisible()
	}
}
