// One row for each order: a change of one order computes that order and the sums, and nothing else.
//
//     stet run examples/orders/orders.js
//     stet set piece:orders:argument/orders/1/quantity 5 && stet run examples/orders/orders.js
//     stet why orders 'rows[A-2].price'
export default pattern('orders', {
    discount: 0.1,
    orders: [
        { id: 'A-1', quantity: 3, each: 20 },
        { id: 'A-2', quantity: 1, each: 150 },
        { id: 'A-3', quantity: 8, each: 5 },
    ],
}, ({ orders, discount }) => {
    const rows = map(orders, (order) => {
        const price = computed({ order, discount }, ({ order, discount }) => order.quantity * order.each * (1 - discount), { id: 'price' });
        return { id: order.id, price };
    }, { key: 'id', id: 'rows' });
    const large = filter(orders, (order) => computed({ order }, ({ order }) => order.quantity * order.each > 100, { id: 'large' }), { key: 'id' });
    const total = reduce(rows, (sum, row) => computed({ sum, row }, ({ sum, row }) => sum + row.price, { id: 'sum' }), 0);
    return { rows, large, total };
});
